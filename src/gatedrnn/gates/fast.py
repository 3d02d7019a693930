"""The fast gate of Ohno, Kanai and Ida: it saturates doubly exponentially."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class Fast(SigmoidOf):
    """φ(z) = σ(sinh z)."""

    saturation = "O(e^-e^z)"

    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.cosh(z)

    def alpha_inverse(self, s: Tensor) -> Tensor:
        return torch.asinh(s)
