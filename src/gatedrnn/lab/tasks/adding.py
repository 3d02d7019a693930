"""The adding problem: remember two marked numbers and output their sum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gatedrnn.lab.tasks.base import FreshTask, check_length
from gatedrnn.lab.tasks.streams import Batch


@dataclass(frozen=True)
class Adding(FreshTask):
    """Add the two marked numbers of a sequence.

    The input holds numbers from U(0, 1) and a marker, which is 1 at one step of each half and 0 elsewhere. The target,
    the sum of the two marked numbers, is compared with the last output. Always answering 1 gives an MSE of 1/6 ≈ 0.167.
    """

    length: int = 5000
    """Number of steps T."""

    name = "adding"
    input_size = 2
    output_size = 1
    last = 1
    metric = "mse"
    lower_is_better = True
    metric_scale = "log"

    @property
    def steps(self) -> int:
        return self.length

    @property
    def t_max(self) -> float:
        return float(self.length)

    def check(self) -> None:
        check_length(self.length)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Input (T, B, 2): the numbers and the marker. Target (1, B, 1)."""
        half, rows = self.length // 2, torch.arange(size)
        values = torch.rand(self.length, size, generator=generator)
        first = torch.randint(half, (size,), generator=generator)
        second = torch.randint(half, self.length, (size,), generator=generator)
        markers = torch.zeros(self.length, size)
        markers[first, rows] = markers[second, rows] = 1.0
        target = values[first, rows] + values[second, rows]
        return Batch(torch.stack([values, markers], -1), target[None, :, None])

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        errors = F.mse_loss(output, target, reduction="none")
        return {"loss": errors, "mse": errors}
