"""The normalised softsign gate: slow saturation, for comparison."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class Softsign(SigmoidOf):
    """φ(z) = (softsign(z/2)+1)/2 = σ(sign(z)·log(1+|z|)).

    Written through m = 1/(2+|z|), the smaller of φ and 1−φ: the logarithm and the exponential would lose digits.
    """

    saturation = "O(1/z)"

    def alpha(self, z: Tensor) -> Tensor:
        return _with_sign_of(z, torch.log1p(_magnitude(z)))

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1.0 / (1.0 + _magnitude(z))

    def alpha_inverse(self, s: Tensor) -> Tensor:
        return _with_sign_of(s, torch.expm1(_magnitude(s)))

    def _value(self, z: Tensor) -> Tensor:  # type: ignore[override]
        m = 1.0 / (2.0 + z.abs())
        return torch.where(z >= 0, 1.0 - m, m)

    def _complement(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return self._value(-z)

    def _log_value(self, z: Tensor) -> Tensor:  # type: ignore[override]
        a = _magnitude(z)
        return torch.where(z >= 0, -torch.log1p(1.0 / (1.0 + a)), -torch.log(2.0 + a))

    def _log_complement(self, z: Tensor) -> Tensor:  # type: ignore[override]
        return self._log_value(-z)

    def _reciprocal_complement(self, z: Tensor) -> Tensor:  # type: ignore[override]
        a = _magnitude(z)
        return torch.where(z >= 0, 2.0 + a, 1.0 + 1.0 / (1.0 + a))

    def _inverse(self, small: Tensor, above: Tensor) -> tuple[Tensor, ...]:
        z = (1.0 - 2.0 * small) / small  # near ½ the difference is exact
        return (torch.where(above, z, -z),)

    def _derivatives(self, z: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        return ((2.0 + _magnitude(z)) ** -2,)


def _with_sign_of(z: Tensor, size: Tensor) -> Tensor:
    return torch.where(z >= 0, size, -size)


def _magnitude(z: Tensor) -> Tensor:
    """|z| whose gradient at 0 is 1, the limit from above: torch's abs would give 0 and kill φ′(0)."""
    return torch.where(z >= 0, z, -z)
