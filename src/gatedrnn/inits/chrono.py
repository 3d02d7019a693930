"""Chrono initialisation (Tallec and Ollivier, 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.inits.base import ForgetInit


@dataclass(frozen=True)
class Chrono(ForgetInit):
    """φ(b) = u/(1+u) with u ~ U(1, t_max−1): time scales spread up to t_max, the longest dependency expected.

    An untied cell's input gate gets the mirror image, b_i = −log u.

    Args:
        t_max: The longest dependency expected, in steps; above 2.
    """

    t_max: float
    sets_input = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.t_max) and self.t_max > 2):
            raise ValueError(f"Chrono needs a finite t_max above 2, got t_max={self.t_max}")

    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        u = self._draw(1.0, self.t_max - 1.0, hidden_size, generator)
        return self._inverse_complement(gate, 1.0 / (1.0 + u))
