"""A gate as a function of z alone, for the figures and theorems with one variable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate, SigmoidOf, name_of

_BISECTIONS = 64  # halve a bracket of a thousand down to 1e-16


@dataclass(frozen=True)
class OneVariable:
    """φ of its first pre-activation, the auxiliary ones held at +∞: for the refine gate r = 1.

    That is where the refine gate saturates fastest; for any fixed r < 1 its order is the sigmoid's.
    """

    gate: Gate

    @property
    def label(self) -> str:
        """The gate's name, with the place of its auxiliary variable where it has one."""
        return f"{name_of(self.gate)} (r = 1)" if self.gate.preactivations > 1 else name_of(self.gate)

    def _all(self, z: Tensor) -> tuple[Tensor, ...]:
        return (z, *(torch.full_like(z, math.inf) for _ in range(self.gate.preactivations - 1)))

    def value(self, z: Tensor) -> Tensor:
        """φ(z)."""
        return self.gate.value(*self._all(z))

    def complement(self, z: Tensor) -> Tensor:
        """1−φ(z)."""
        return self.gate.complement(*self._all(z))

    def log_complement(self, z: Tensor) -> Tensor:
        """log(1−φ(z)), finite long after 1−φ(z) has left the normal numbers."""
        return self.gate.log_complement(*self._all(z))

    def derivative(self, z: Tensor) -> Tensor:
        """φ′(z)."""
        slopes = self.gate.derivative(*self._all(z))
        slope: Tensor = slopes[0] if isinstance(slopes, tuple) else slopes
        return slope

    def log_derivative(self, z: Tensor) -> Tensor:
        """log φ′(z), also where φ′(z) is no float64 (softsign at 1−φ = 1e-300 has φ′ = 1e-600)."""
        if isinstance(self.gate, SigmoidOf):
            # φ′ = φ(1−φ)α′
            slope = torch.log(self.gate.alpha_derivative(z))
            return self.gate.log_value(z) + self.gate.log_complement(z) + slope
        slope = self.derivative(z)
        alive = slope > 0
        if bool(alive.all()):
            return torch.log(slope)
        # φ′ = −(1−φ)·(log(1−φ))′
        with torch.enable_grad():
            variable = z.detach().clone().requires_grad_()
            log_q = self.log_complement(variable)
            (fall,) = torch.autograd.grad(log_q.sum(), variable)
        tail = log_q.detach() + torch.log(-fall)
        return torch.where(alive, torch.log(torch.where(alive, slope, 1.0)), tail)

    def inverse_complement(self, y: Tensor) -> Tensor:
        """The z with 1−φ(z) = y."""
        if self.gate.preactivations == 1:
            root: Tensor = self.gate.inverse_complement(y)
            return root
        # The gate's own inverse moves the auxiliary variable too, so here the equation is solved for z alone.
        goal = torch.log(y)
        low, high = torch.full_like(y, -1.0), torch.ones_like(y)
        while bool((above := self.log_complement(high) > goal).any()):
            high = torch.where(above, 2.0 * high, high)
        while bool((below := self.log_complement(low) < goal).any()):
            low = torch.where(below, 2.0 * low, low)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            above = self.log_complement(middle) > goal
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        return 0.5 * (low + high)

    def log_gradient_at(self, y: Tensor) -> Tensor:
        """log g_φ(f) at f = 1−y, where g_φ(f) = φ′(φ⁻¹(f)) (eq:dynamics_y)."""
        return self.log_derivative(self.inverse_complement(y))
