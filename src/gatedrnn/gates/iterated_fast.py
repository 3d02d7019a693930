"""The fast gate with sinh applied twice (the paper's appendix on other choices)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class IteratedFast(SigmoidOf):
    """φ(z) = σ(sinh(sinh z))."""

    saturation = "O(e^-e^e^z)"

    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(torch.sinh(_wide(z))).to(z.dtype)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        wide = _wide(z)
        return (torch.cosh(torch.sinh(wide)) * torch.cosh(wide)).to(z.dtype)

    def alpha_inverse(self, s: Tensor) -> Tensor:
        return torch.asinh(torch.asinh(s))


def _wide(z: Tensor) -> Tensor:
    """z in float64: the outer sinh multiplies the rounding of the inner one. (Metal has no float64.)"""
    return z if z.device.type == "mps" else z.double()
