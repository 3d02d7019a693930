"""The fast gate with sinh applied twice (the paper's appendix on other choices)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import stable
from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class IteratedFast(SigmoidOf):
    """φ(z) = σ(sinh(sinh z))."""

    saturation = "O(e^-e^e^z)"

    # The outer sinh multiplies the rounding of the inner one: both are computed in float64.
    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(torch.sinh(stable.widest(z))).to(z.dtype)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        wide = stable.widest(z)
        return (torch.cosh(torch.sinh(wide)) * torch.cosh(wide)).to(z.dtype)

    def alpha_inverse(self, s: Tensor) -> Tensor:
        return torch.asinh(torch.asinh(s))
