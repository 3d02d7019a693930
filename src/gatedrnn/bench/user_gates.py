"""Ten gates as a user would write them: the cost of a custom formula compared with a built-in gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import SigmoidOf


@dataclass(frozen=True)
class UserGate(SigmoidOf):
    """α and α′ as two functions."""

    name: str
    function: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    def alpha(self, z: Tensor) -> Tensor:
        return self.function(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return self.slope(z)


CUBIC = UserGate("z + z³/3", lambda z: z + z**3 / 3, lambda z: 1 + z**2)
USER_GATES = (
    CUBIC,
    UserGate("sinh z", torch.sinh, torch.cosh),
    UserGate("sinh(2z)/2", lambda z: torch.sinh(2 * z) / 2, lambda z: torch.cosh(2 * z)),
    UserGate(
        "z·exp(z²/4)",
        lambda z: z * torch.exp(z * z / 4),
        lambda z: (1 + z * z / 2) * torch.exp(z * z / 4),
    ),
    UserGate("sign(z)·log1p|z|", lambda z: torch.sign(z) * torch.log1p(z.abs()), lambda z: 1 / (1 + z.abs())),
    UserGate(
        "z·√(1+z²)",
        lambda z: z * torch.sqrt(1 + z * z),
        lambda z: (1 + 2 * z * z) / torch.sqrt(1 + z * z),
    ),
    UserGate("asinh z", torch.asinh, lambda z: torch.rsqrt(1 + z * z)),
    UserGate(
        "(exp z − exp −z)/2",
        lambda z: (torch.exp(z) - torch.exp(-z)) / 2,
        lambda z: (torch.exp(z) + torch.exp(-z)) / 2,
    ),
    UserGate("z + z⁵/10", lambda z: z + z**5 / 10, lambda z: 1 + z**4 / 2),
    UserGate(
        "where(|z|<1, z, z|z|)",
        lambda z: torch.where(z.abs() < 1, z, z * z.abs()),
        lambda z: torch.where(z.abs() < 1, torch.ones_like(z), 2 * z.abs()),
    ),
)
