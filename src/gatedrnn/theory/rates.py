"""How fast 1−f falls along the flow for λ = 1: the laws, their constants fitted, the exponent measured.

With y = 1−f and λ = 1 eq:dynamics_y reads dy/dτ = −Δt f^{Δt−1} g_φ². Each law is written clock(y) = C(τ + τ₀), with
a clock that runs evenly in τ as y → 0: 1/y for the sigmoid, 1/y³ for softsign, 1/(y (log y)²) for the fast gate.
For any other gate of one variable the clock is y/g_φ², of which these are the leading terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from gatedrnn.gates import Fast, Gate, Refine, Sigmoid, Softsign
from gatedrnn.theory.one_variable import OneVariable

Array = NDArray[np.float64]

_LOWEST = float(np.log(1e-300))
_CORRECTIONS = 6  # of a value read from a fine table: each gains several digits


@dataclass(frozen=True)
class Law:
    """clock(y) = C(τ + τ₀), for log y below ``ceiling``; everything in logarithms."""

    formula: str
    log_clock: Callable[[Array], Array]
    #: log y from log clock; NaN where the clock is not yet inside the law's range.
    inverse: Callable[[Array], Array]
    #: C/Δt as the derivation gives it in the limit, where there is a derivation.
    constant: float | None = None
    ceiling: float = 0.0


@dataclass(frozen=True)
class Fit:
    """A law fitted to a flow on a window of τ."""

    law: Law
    constant: float
    shift: float
    #: largest |y_law/y − 1| on the window
    deviation: float

    def log_complement(self, tau: ArrayLike) -> Array:
        """log y as the fitted law has it; NaN before the law begins."""
        elapsed = self.constant * (np.asarray(tau, dtype=np.float64) + self.shift)
        started = elapsed > 0
        log_y = self.law.inverse(np.log(np.where(started, elapsed, 1.0)))
        return np.where(started & (log_y < self.law.ceiling), log_y, np.nan)


def exponent(tau: ArrayLike, log_complement: ArrayLike) -> float:
    """The slope of log(1−f) against log τ, by least squares; NaN where f has reached 1 within float64."""
    log_y = np.asarray(log_complement, dtype=np.float64)
    if not np.isfinite(log_y).all():
        return float("nan")
    return float(np.polyfit(np.log(np.asarray(tau)), log_y, 1)[0])


def fit(law: Law, tau: ArrayLike, log_complement: ArrayLike) -> Fit:
    """Constant and shift of the law by least squares on the relative error of its clock."""
    times, log_y = np.asarray(tau, dtype=np.float64), np.asarray(log_complement, dtype=np.float64)
    inside = np.isfinite(log_y) & (log_y < law.ceiling)
    if np.count_nonzero(inside) < 3:
        raise ValueError("fewer than three points of the flow lie in the range of the law")
    times, log_y = times[inside], log_y[inside]
    scale = float(times[-1])
    weight = np.exp(law.log_clock(log_y[-1:]) - law.log_clock(log_y))
    # (Cτ + Cτ₀)/clock = 1, with τ and clock in units of their last values
    solved = np.linalg.lstsq(np.stack([times / scale * weight, weight], 1), np.ones_like(times))[0]
    unit = float(np.exp(law.log_clock(log_y[-1:]))[0])
    fitted = Fit(law, float(solved[0]) * unit / scale, float(solved[1] / solved[0]) * scale, np.nan)
    deviation = float(np.max(np.abs(np.expm1(fitted.log_complement(times) - log_y))))
    return Fit(law, fitted.constant, fitted.shift, deviation)


def power_law(power: float, constant: float | None = None) -> Law:
    """y^−power = C(τ + τ₀)."""
    formula = "1/y = C(τ+τ₀)" if power == 1 else f"y^-{power:.4g} = C(τ+τ₀)"
    return Law(formula, lambda log_y: -power * log_y, lambda log_clock: -log_clock / power, constant)


def solve_fast_law(clock: ArrayLike) -> Array:
    """The y < e⁻² with y (log y)² = 1/clock, that is √y = exp(W₋₁(−(4 clock)^{−1/2})); NaN for clock < e²/4.

    The branch −1 matters: the principal one has log √y > −1, which tends to y → 1.
    """
    return np.exp(_log_fast_law(np.log(np.asarray(clock, dtype=np.float64))))


def _log_fast_law(log_clock: Array) -> Array:
    argument = -0.5 * np.exp(-0.5 * np.asarray(log_clock))
    inside = argument >= -np.exp(-1.0)
    return np.where(inside, 2.0 * lambertw(np.where(inside, argument, -np.exp(-1.0)), k=-1).real, np.nan)


def _general_law(gate: Gate) -> Law:
    one = OneVariable(gate)

    def log_clock(log_y: Array) -> Array:
        y = torch.from_numpy(np.exp(np.asarray(log_y, dtype=np.float64)))
        return np.asarray(log_y) - 2.0 * one.log_gradient_at(y).numpy()

    # The clock may run backwards far from saturation; the law begins below the last place where it does.
    grid = np.linspace(_LOWEST, np.log(0.5), 4001)
    table = log_clock(grid)
    backwards = np.flatnonzero(np.diff(table) >= 0)
    last = int(backwards[0]) if backwards.size else grid.size - 1

    def inverse(target: Array) -> Array:
        right = np.clip(last + 1 - np.searchsorted(table[last::-1], target), 1, max(last, 1))
        slope = (table[right] - table[right - 1]) / (grid[right] - grid[right - 1])
        log_y = grid[right] + (target - table[right]) / slope
        for _ in range(_CORRECTIONS):
            log_y = np.clip(log_y, _LOWEST, np.log(0.5))
            log_y = log_y + (target - log_clock(log_y)) / slope
        return np.where(target >= table[last], log_y, np.nan)

    ceiling = float(grid[last])
    return Law("y/g_φ(1−y)² = C(τ+τ₀)", log_clock, inverse, None, ceiling)


_FAST_LAW = Law(
    "1/(y (log y)²) = C(τ+τ₀)",
    lambda log_y: -log_y - 2.0 * np.log(-log_y),
    _log_fast_law,
    1.0,
    -2.0,  # y (log y)² rises with y only up to e⁻²
)


def law_of(gate: Gate, measured: float) -> Law:
    """The law of a gate: the derived one where there is one, else one that its g_φ gives.

    A gate with an auxiliary variable has no g_φ of the output alone; unless it is the refine gate, its law is the
    power of τ that was ``measured``.
    """
    derived = {
        Sigmoid: power_law(1.0, 1.0),
        Refine: power_law(1.0, 2.0),
        Softsign: power_law(3.0, 3.0),
        Fast: _FAST_LAW,
    }
    if type(gate) in derived:
        return derived[type(gate)]
    return _general_law(gate) if gate.preactivations == 1 else power_law(-1.0 / measured)
