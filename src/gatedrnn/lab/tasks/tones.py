"""Synthetic sound: which tone was heard at the start?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.lab.tasks.base import FreshTask, check_length
from gatedrnn.lab.tasks.classification import class_loss, class_measures
from gatedrnn.lab.tasks.streams import Batch

_TONES = 10
_LOWEST, _HIGHEST = 1 / 40, 1 / 4  # periods a sample: at 16 kHz, 400 Hz and 4 kHz
_MOST_NOISE = 1e3


@dataclass(frozen=True)
class Tones(FreshTask):
    """Recognise which of ten tones was heard at the start of a long noise.

    The sound has one value per step: for the first steps a tone of amplitude 1 with a random phase, and over the whole
    length Gaussian noise. The ten frequencies lie between 1/40 and 1/4 of a period per step, each above the one before
    by the same factor. The answer is given at the end. Guessing gives an accuracy of 0.1.
    """

    length: int = 16_000
    """Number of steps T."""
    tone: int = 100
    """How many of the first steps have the tone; all of them where the sound is shorter."""
    noise: float = 0.1
    """Standard deviation of the noise."""

    name = "tones"
    input_size = 1
    output_size = _TONES
    last = 1
    metric = "accuracy"
    lower_is_better = False
    monitored = True

    @property
    def steps(self) -> int:
        return self.length

    @property
    def t_max(self) -> float:
        return float(self.length)

    def check(self) -> None:
        check_length(self.length)
        if self.tone < 1:
            raise ValueError(f"tone must be at least 1, got {self.tone}")
        if not 0 <= self.noise <= _MOST_NOISE:
            raise ValueError(f"noise must be between 0 and {_MOST_NOISE:g}, got {self.noise}")

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Input (T, B, 1): the sound. Target (1, B): the number of the tone, the lowest is 0."""
        number = torch.randint(_TONES, (size,), generator=generator)
        phase = torch.rand(size, generator=generator)
        sound = self.noise * torch.randn(self.length, size, generator=generator)
        time = torch.arange(min(self.tone, self.length)).unsqueeze(-1)
        sound[: self.tone] += torch.sin(2 * math.pi * (frequencies()[number] * time + phase))
        return Batch(sound.unsqueeze(-1), number.unsqueeze(0))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)


def frequencies() -> Tensor:
    """Of the ten tones, in periods a step."""
    return torch.logspace(math.log10(_LOWEST), math.log10(_HIGHEST), _TONES)
