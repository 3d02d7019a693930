"""Custom gates, as users write them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import SigmoidOf


@dataclass(frozen=True)
class Cubic(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z + z**3 / 3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + z**2


@dataclass(frozen=True)
class MySinh(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.cosh(z)


@dataclass(frozen=True)
class Scaled(SigmoidOf):
    scale: float = 2.0

    def alpha(self, z: Tensor) -> Tensor:
        return torch.sinh(self.scale * z) / self.scale

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.cosh(self.scale * z)


@dataclass(frozen=True)
class Gaussian(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z * torch.exp(z * z / 4)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return (1 + z * z / 2) * torch.exp(z * z / 4)


@dataclass(frozen=True)
class Logarithm(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.sign(z) * torch.log1p(z.abs())

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 / (1 + z.abs())


@dataclass(frozen=True)
class Root(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z * torch.sqrt(1 + z * z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return (1 + 2 * z * z) / torch.sqrt(1 + z * z)


@dataclass(frozen=True)
class Asinh(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.asinh(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.rsqrt(1 + z * z)


@dataclass(frozen=True)
class Exponentials(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return (torch.exp(z) - torch.exp(-z)) / 2

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return (torch.exp(z) + torch.exp(-z)) / 2


@dataclass(frozen=True)
class Quintic(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z + z**5 / 10

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + z**4 / 2


@dataclass(frozen=True)
class Pieces(SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() < 1, z, z * z.abs())

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() < 1, torch.ones_like(z), 2 * z.abs())


#: Ten gates, all of which have a program.
OWN: list[SigmoidOf] = [
    Cubic(), MySinh(), Scaled(), Gaussian(), Logarithm(), Root(), Asinh(), Exponentials(), Quintic(), Pieces()
]  # fmt: skip
