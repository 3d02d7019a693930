"""Gates between the sigmoid and the fast gate: the first terms of a series in place of sinh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import stable
from gatedrnn.gates.base import SigmoidOf


@dataclass(frozen=True)
class Polynomial(SigmoidOf):
    """φ(z) = σ(z + c₁z³ + c₂z⁵ + …) with cₖ ≥ 0 (default: z + z³).

    Args:
        coefficients: c₁, c₂, …, each finite; without any, φ is the sigmoid. Default: (1,)
    """

    saturation = "O(e^-z^d), d the degree"
    coefficients: Sequence[float] = (1.0,)

    def __post_init__(self) -> None:
        coefficients = tuple(float(c) for c in self.coefficients)
        for k, c in enumerate(coefficients):
            if not (c >= 0 and math.isfinite((2 * k + 3) * c)):  # the factor is that of the derivative
                raise ValueError(f"the coefficients of Polynomial must be finite and at least 0, got {c}")
        while coefficients and coefficients[-1] == 0:  # 0·inf would make a NaN
            coefficients = coefficients[:-1]
        object.__setattr__(self, "coefficients", coefficients)

    def alpha(self, z: Tensor) -> Tensor:
        # In float64 where that is wider: a coefficient that float32 takes for 0 or inf would make 0·inf.
        wide = stable.widest(z)
        s = wide * self._horner(wide, [1.0, *self.coefficients])
        return (s if wide.dtype != z.dtype else s + self._rounding(z.detach())).to(z.dtype)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        slopes = [1.0, *((2 * k + 3) * c for k, c in enumerate(self.coefficients))]
        return self._horner(stable.widest(z), slopes).to(z.dtype)

    @staticmethod
    def _horner(z: Tensor, coefficients: list[float]) -> Tensor:
        square, total = z * z, torch.full_like(z, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total * square + c
        return total

    def _rounding(self, z: Tensor) -> Tensor:
        """What Horner's scheme loses to rounding in α (Graillat, Langlois, Louvet): e^−α would multiply it by α."""
        coefficients = [1.0, *self.coefficients]
        square, square_error = stable.product_error(z, z)
        total, error = torch.full_like(z, coefficients[-1]), torch.zeros_like(z)
        for c in coefficients[-2::-1]:
            product, product_error = stable.product_error(total, square)
            total_error = error * square + total * square_error + product_error
            total, sum_error = stable.sum_error(product, c)
            error = total_error + sum_error
        _, product_error = stable.product_error(z, total)
        error = z * error + product_error
        return torch.where(torch.isfinite(error), error, 0.0)
