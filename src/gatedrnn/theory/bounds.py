"""The paper's bounds on 1−f along the flow (prop:sigmoid_softsign_convergence_rate and the appendix), corrected.

From τ₀ on the flow obeys C·h(y) ≤ −dy/dτ ≤ C̃·h(y) with the same h on both sides, so 1−f stays between the two curves
that solve these equations from the same start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gatedrnn.gates import Fast, Refine, Sigmoid, Softsign
from gatedrnn.theory.rates import Law, law_of
from gatedrnn.theory.toy import ToyProblem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """y between the law with the constant ``slow`` (above) and the law with ``quick`` (below), from (τ₀, y₀) on."""

    law: Law
    slow: float
    quick: float
    tau0: float
    log_y0: float

    def upper(self, tau: ArrayLike) -> Array:
        """log of the largest 1−f possible at τ ≥ τ₀."""
        return self._solve(self.slow, tau)

    def lower(self, tau: ArrayLike) -> Array:
        """log of the smallest 1−f possible at τ ≥ τ₀."""
        return self._solve(self.quick, tau)

    def _solve(self, constant: float, tau: ArrayLike) -> Array:
        elapsed = np.asarray(tau, dtype=np.float64) - self.tau0
        begun = np.exp(self.law.log_clock(np.asarray([self.log_y0])))[0]
        return self.law.inverse(np.log(begun + constant * elapsed))


def bounds(problem: ToyProblem, tau0: float, z0: torch.Tensor) -> Bounds:
    """The bounds for λ = 1 from the point z₀ that the flow has reached at τ₀, for the paper's four gates."""
    gate, dt = problem.gate, problem.interval
    if problem.target != 1.0:
        raise ValueError("the bounds are derived for λ = 1")
    log_y0 = float(problem.log_complement(z0))
    f0 = -math.expm1(log_y0)
    if isinstance(gate, Sigmoid):  # dy/dτ = −Δt f^{Δt+1} y²
        slow, quick = dt * f0 ** (dt + 1), float(dt)
    elif isinstance(gate, Softsign):  # dy/dτ = −Δt f^{Δt−1} y⁴, and (y⁻³)′ = 3y⁻⁴(−y′): the factor 3
        slow, quick = 3 * dt * f0 ** (dt - 1), 3.0 * dt
    elif isinstance(gate, Refine):  # f²y² ≤ (∂g/∂z)² ≤ 4f²y² and 0 ≤ (∂g/∂z̃)² ≤ r²y², for r ≥ ½
        if float(z0[1]) < 0:
            raise ValueError("the bounds of the refine gate need r ≥ 1/2")
        slow, quick = dt * f0 ** (dt - 1) * float(torch.sigmoid(z0[0])) ** 2, 5.0 * dt
    elif isinstance(gate, Fast):
        # −y′ = Δt f^{Δt+1} y²(1+s²), s = logit f, against h = y²L²·L/(2+L), L = log y, whose clock is 1/(yL²).
        # For L ≤ −4: L²/4 ≤ 1+s² ≤ 17/16 L², and 1 ≤ L/(2+L) ≤ 2.
        if log_y0 > -4.0:
            raise ValueError("the bounds of the fast gate begin at 1−f = e⁻⁴")
        slow, quick = dt * f0 ** (dt + 1) / 8.0, 17.0 / 16.0 * dt
    else:
        raise ValueError(f"no bounds are derived for {gate!r}")
    return Bounds(law_of(gate, -1.0), slow, quick, tau0, log_y0)
