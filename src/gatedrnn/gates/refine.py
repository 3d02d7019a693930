"""The refine gate of Gu et al. (2020), which pushes σ(z) towards 0 or 1 by an auxiliary gate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates.base import Gate
from gatedrnn.gates.sigmoid import Sigmoid
from gatedrnn.gates.stable import log_sigmoid, sigmoid_parts, sigmoid_slope

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
        f, q = sigmoid_parts(z)
        r, _ = sigmoid_parts(z_r)
        return (f * (f + 2.0 * r * q)).clamp(max=1.0)  # the rounding of the sum could lead beyond 1

    def _complement(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        return self._value(-z, -z_r)

    def _log_value(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        # Towards 1 from the complement, elsewhere from log f + log(f + 2rq), neither factor of which may underflow.
        complement = self.complement(z, z_r)
        high = complement < 0.5
        log_f, log_2rq = log_sigmoid(z), math.log(2.0) + log_sigmoid(z_r) + log_sigmoid(-z)
        low = log_f + torch.logaddexp(log_f, log_2rq)
        return torch.where(high, torch.log1p(-torch.where(high, complement, 0.0)), low)

    def _log_complement(self, z: Tensor, z_r: Tensor) -> Tensor:  # type: ignore[override]
        return self._log_value(-z, -z_r)

    def _derivatives(self, z: Tensor, z_r: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        f, q = _SIGMOID.value(z), _SIGMOID.complement(z)
        r, not_r = _SIGMOID.value(z_r), _SIGMOID.complement(z_r)
        slope_r = sigmoid_slope(z_r, torch.full_like(z_r, 2.0))
        return sigmoid_slope(z, 2.0 * (r * q + not_r * f)), sigmoid_slope(z, slope_r)

    def _inverse(self, s: Tensor) -> tuple[Tensor, ...]:
        return s, torch.zeros_like(s)
