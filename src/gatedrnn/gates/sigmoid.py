"""The logistic sigmoid, the usual gate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class Sigmoid(SigmoidOf):
    """φ(z) = σ(z) = 1/(1+e^−z)."""

    saturation = "O(e^-z)"

    def alpha(self, z: Tensor) -> Tensor:
        return z

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)

    def alpha_inverse(self, s: Tensor) -> Tensor:
        return s
