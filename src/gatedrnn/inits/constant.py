"""Every unit starts with the same gate value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.inits.base import ForgetInit


@dataclass(frozen=True)
class Constant(ForgetInit):
    """The same gate value for every unit: φ(b) = value.

    Args:
        value: The gate's value, between 0 and 1. Default: σ(1) ≈ 0.731, that of a sigmoid with bias 1
    """

    value: float = 1.0 / (1.0 + math.exp(-1.0))

    def __post_init__(self) -> None:
        if not 0 < self.value < 1:
            raise ValueError(f"Constant needs a gate value between 0 and 1, got value={self.value}")

    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        return self._inverse(gate, torch.full((hidden_size,), self.value, dtype=torch.float64))
