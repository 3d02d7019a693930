"""The copy problem: remember ten symbols over many blank steps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.lab.tasks.base import FreshTask, check_length
from gatedrnn.lab.tasks.classification import class_loss, class_measures
from gatedrnn.lab.tasks.streams import Batch

_SYMBOLS = 8
_COUNT = 10  # symbols to remember
_BLANK, _MARKER = 0, 9  # the symbols are 1 to 8


@dataclass(frozen=True)
class Copy(FreshTask):
    """Repeat ten symbols after T blank steps.

    The paper's layout, of length T+20: ten symbols out of eight, T blanks, one marker at position T+11 (counted from
    1), nine blanks. Over the last ten steps, from the marker on, the ten symbols are put out. (Others repeat the marker
    ten times or place it elsewhere.)
    """

    length: int = 500
    """Number of blank steps T between the symbols and the marker; the sequence has T+20 steps."""

    name = "copy"
    input_size = _SYMBOLS + 2
    output_size = _SYMBOLS + 2
    last = _COUNT
    metric = "accuracy"
    lower_is_better = False

    @property
    def steps(self) -> int:
        return self.length + 2 * _COUNT

    @property
    def t_max(self) -> float:
        return 1.5 * self.length

    def check(self) -> None:
        check_length(self.length)

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Input (T+20, B, 10), one-hot; target (10, B), the symbols as integers."""
        symbols = torch.randint(1, _SYMBOLS + 1, (_COUNT, size), generator=generator)
        tokens = torch.full((self.steps, size), _BLANK)
        tokens[:_COUNT] = symbols
        tokens[self.length + _COUNT] = _MARKER
        # Scattered in place of F.one_hot, whose result is of integers eight times the size.
        one_hot = torch.zeros(*tokens.shape, self.input_size).scatter_(-1, tokens[..., None], 1.0)
        return Batch(one_hot, symbols)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)
