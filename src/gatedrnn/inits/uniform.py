"""Uniform gate initialisation (Gu et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.inits.base import ForgetInit


@dataclass(frozen=True)
class Uniform(ForgetInit):
    """φ(b) ~ U(1/H, 1−1/H). An auxiliary pre-activation starts at −b, as in its authors' paper.

    The value of the refine gate is then 2u − 3u² + 2u³ of a uniform u, which is not uniform: half as many units have a
    very long time scale.
    """

    smallest_size = 2  # (1/H, 1−1/H) is no interval for H = 1

    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        first, *auxiliary = self._inverse(
            gate, self._draw(1.0 / hidden_size, 1.0 - 1.0 / hidden_size, hidden_size, generator)
        )
        return first, *(-first for _ in auxiliary)
