"""The refine gate of Gu et al. (2020), which pushes σ(z) towards 0 or 1 by an auxiliary gate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import Gate
from gatedrnn.gates.sigmoid import Sigmoid
from gatedrnn.gates.stable import log_sigmoid, logit, sigmoid_parts, sigmoid_slope, softplus, widest

_SIGMOID = Sigmoid()


@dataclass(frozen=True)
class Refine(Gate):
    """g = r(1−(1−f)²) + (1−r)f² with f = σ(z), r = σ(z_r).

    With q = 1−f it is g = f(f+2rq) and 1−g = q(q+2(1−r)f): sums of positive terms, nothing cancels.
    Its inverse takes z_r = 0, where g = f.
    """

    saturation = "O(e^-2z) at r = 1, O(e^-z) at any fixed r < 1"
    preactivations = 2

    def _value(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        # In float64: in float32 the roundings of the sum make g fall here and there where z grows.
        (f, q), (r, _) = sigmoid_parts(widest(z)), sigmoid_parts(widest(z_r))
        return (f * (f + 2.0 * r * q)).clamp(max=1.0).to(z.dtype)

    def _complement(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        return self._value(-z, -z_r)

    def _log_value(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        value, complement = self.value(z, z_r), self.complement(z, z_r)
        high, deep = complement < 0.5, value < 2**-30
        log_1 = torch.log1p(-torch.where(high, complement, 0.0))
        log_0 = torch.log(torch.where(high | deep, 1.0, value))
        # Where g could underflow: log f + log(f + 2rq), the second of which is log f + softplus(log 2r − z).
        largest = torch.finfo(z.dtype).max  # keeps inf − inf away
        log_f, log_2r = log_sigmoid(z), math.log(2.0) + log_sigmoid(z_r)
        log_deep = log_f + (log_f + softplus(log_2r - z.clamp(-largest, largest)))
        return torch.where(high, log_1, torch.where(deep, log_deep, log_0))

    def _log_complement(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        return self._log_value(-z, -z_r)

    def _reciprocal_complement(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        (f, q), (_, not_r) = sigmoid_parts(z.detach()), sigmoid_parts(z_r.detach())
        # 1/q = e^z/f, in two halves: e^z alone may overflow where the product does not.
        root = torch.exp(0.5 * z.detach())
        reciprocal = root * (root / (f * (q + 2.0 * not_r * f)))
        # The logarithm has rounding errors of its own, but a gradient that does not overflow: e^0 carries it, but for
        # the last factor of 4 below overflow, where terms of the gradient do.
        log_q = self._log_complement(z, z_r)
        end = reciprocal > 0.25 * torch.finfo(z.dtype).max
        return reciprocal * torch.exp(torch.where(end, 0.0, log_q.detach() - log_q))

    def _derivatives(self, z: Tensor, z_r: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        f, q = _SIGMOID.value(z), _SIGMOID.complement(z)
        r, not_r = _SIGMOID.value(z_r), _SIGMOID.complement(z_r)
        slope_r = sigmoid_slope(z_r, torch.full_like(z_r, 2.0))
        return sigmoid_slope(z, 2.0 * (r * q + not_r * f)), sigmoid_slope(z, slope_r)

    def from_logit(self, s: Tensor) -> tuple[Tensor, ...]:
        return s, torch.zeros_like(s)

    def _inverse(self, small: Tensor, above: Tensor) -> tuple[Tensor, ...]:
        s = logit(small)
        return torch.where(above, -s, s), torch.zeros_like(s)
