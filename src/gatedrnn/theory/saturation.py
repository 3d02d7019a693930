"""Order of saturation: the paper's definition and Theorem thm:efficient_learning as statements one can check."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate, Sigmoid
from gatedrnn.theory.one_variable import OneVariable

#: The factors a of the definition. It says "any a > 0"; ten is as far as σ(sinh(sinh z)) reaches in float64.
FACTORS = (0.1, 0.5, 1.0, 2.0, 10.0)
#: 1−f at which the theorem's ratio is looked at.
LEVELS = (1e-2, 1e-5, 1e-10, 1e-20, 1e-30, 1e-50, 1e-75, 1e-100, 1e-150, 1e-200, 1e-250, 1e-300)
# |log ratio| from which a ratio that still moves away from 1 is called 0 or infinite: a factor of 1e13.
_DECIDED = 30.0
_ROUNDING = 1e-9  # of a logarithm of about 700 computed in float64, generously


@dataclass(frozen=True)
class Comparison:
    """What the definition says of a pair of gates, φ against φ̃."""

    #: For each factor a: where (1−φ(z))/(1−φ̃(az)) goes as z → ∞, "zero", "infinity" or "bounded".
    limits: dict[float, str]
    #: Whether φ̃⁻¹(φ(z)) is convex for z ≫ 0.
    convex: bool

    @property
    def higher_order(self) -> bool:
        """φ has a higher order of saturation than φ̃."""
        return self.convex and all(limit == "zero" for limit in self.limits.values())


@dataclass(frozen=True)
class Properties:
    """The three properties the paper asks of a gate; each number should be 0 up to rounding."""

    #: (i) a higher order of saturation than σ (the auxiliary variable at +∞)
    saturates_faster: bool
    #: (ii) φ ≈ σ about 0: the larger of |φ(0)−½| and |φ′(0)−¼| (the auxiliary variable at 0)
    distance_at_zero: float
    #: (iii) the largest |φ(−z) − (1−φ(z))| (all variables mirrored)
    asymmetry: float


def log_complement_ratio(gate: Gate, other: Gate, factor: float, z: Tensor) -> Tensor:
    """log of (1−φ(z))/(1−φ̃(az)) (eq:higher_order_saturation); in logarithms, because both underflow."""
    return OneVariable(gate).log_complement(z) - OneVariable(other).log_complement(factor * z)


def gradient_ratio(gate: Gate, other: Gate, y: Tensor) -> Tensor:
    """log of g_φ(f)/g_φ̃(f) at f = 1−y: the ratio that Theorem thm:efficient_learning sends to infinity."""
    return OneVariable(gate).log_gradient_at(y) - OneVariable(other).log_gradient_at(y)


@dataclass(frozen=True)
class Tail:
    """What a comparison needs to know of one gate, so that many pairs cost no more than their gates."""

    #: log(1−φ(az)) on the grid of z, for each factor a, and for a = 1 under ``None``
    log_complements: dict[float | None, Tensor]
    #: log g_φ on the grid of 1−f
    log_gradient: Tensor


def tail(gate: Gate) -> Tail:
    """The tail of a gate, on the grids that all gates share."""
    one = OneVariable(gate)
    z = torch.logspace(-1, 300, 6021, dtype=torch.float64)
    y = torch.logspace(-6, -300, 99, dtype=torch.float64)
    complements: dict[float | None, Tensor] = {a: one.log_complement(a * z) for a in FACTORS}
    return Tail({**complements, None: one.log_complement(z)}, one.log_gradient_at(y))


def compare(gate: Gate, other: Gate) -> Comparison:
    """Check the definition of a higher order of saturation on the pair φ = ``gate``, φ̃ = ``other``."""
    return compare_tails(tail(gate), tail(other))


def compare_tails(gate: Tail, other: Tail) -> Comparison:
    """The same for tails that are known."""
    limits = {a: _limit(gate.log_complements[None] - other.log_complements[a]) for a in FACTORS}
    return Comparison(limits, _convex(gate.log_gradient - other.log_gradient))


def properties(gate: Gate) -> Properties:
    """Check properties (i) to (iii) of the paper's section on desirable gates."""
    zeros = [torch.zeros((), dtype=torch.float64)] * gate.preactivations
    slope = gate.derivative(*zeros)
    slope = slope[0] if isinstance(slope, tuple) else slope
    at_zero = max(abs(float(gate.value(*zeros)) - 0.5), abs(float(slope) - 0.25))
    line = torch.linspace(-8.0, 8.0, 321, dtype=torch.float64)
    grid = torch.meshgrid(*[line[::20] if i else line for i in range(gate.preactivations)], indexing="ij")
    mirrored = gate.value(*(-z for z in grid))
    asymmetry = float((mirrored - gate.complement(*grid)).abs().max())
    return Properties(compare(gate, Sigmoid()).higher_order, at_zero, asymmetry)


def _limit(ratio: Tensor) -> str:
    """Where the log ratio goes, judged on the last tenth of the range of z on which it is finite."""
    ratio = ratio[torch.isfinite(ratio)]
    if len(ratio) < 2:
        return "bounded"
    last = ratio[-max(2, len(ratio) // 10) :]
    if last[-1] < -_DECIDED and bool((torch.diff(last) < 0).all()):
        return "zero"
    if last[-1] > _DECIDED and bool((torch.diff(last) > 0).all()):
        return "infinity"
    return "bounded"


def _convex(ratio: Tensor) -> bool:
    """η = φ̃⁻¹∘φ has η′ = g_φ/g_φ̃ (proof of the theorem), so it is convex where that ratio does not fall."""
    return bool(torch.isfinite(ratio).all()) and bool((torch.diff(ratio) > -_ROUNDING).all())
