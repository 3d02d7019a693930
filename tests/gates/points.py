"""Where the gates are looked at, and how far a result is from the truth there."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import torch
from numpy.typing import NDArray

from gatedrnn.gates import GATES
from tests import tolerances
from tests.gates.formulas import Exact, truth

DTYPES = [torch.float32, torch.float64]
NUMPY: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}
ONE_PREACTIVATION = [name for name, gate in GATES.items() if gate.preactivations == 1]


@dataclass(frozen=True)
class Format:
    digits: int
    smallest_exponent: int

    @property
    def tiny(self) -> Any:
        return mpmath.ldexp(1, self.smallest_exponent)

    def ulp(self, x: Any) -> Any:
        """Spacing of the numbers of this format at x, that of the smallest normal numbers below them."""
        exponent = self.smallest_exponent if x == 0 else max(mpmath.mag(x) - 1, self.smallest_exponent)
        return mpmath.ldexp(1, exponent - self.digits + 1)


FORMATS = {torch.float32: Format(24, -126), torch.float64: Format(53, -1022)}


def _neighbours(x: float, dtype: torch.dtype, reach: int = 4) -> list[float]:
    kind = NUMPY[dtype]
    points = [kind(x)]
    for direction in (-math.inf, math.inf):
        step = kind(x)
        for _ in range(reach):
            step = np.nextafter(step, kind(direction))
            points.append(step)
    return [float(p) for p in points]


def _crossing(function: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at low stops holding towards high."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) else (low, middle)
    return low


@functools.cache
def points(name: str, dtype: torch.dtype) -> tuple[tuple[float, ...], ...]:
    """Places (z,) or (z, z_r): all magnitudes, the saturation edges, the turning points, powers of two, 0 and ±inf."""
    limits = torch.finfo(dtype)
    if GATES[name].preactivations == 2:
        return _pairs(dtype)
    tiny = FORMATS[dtype].tiny

    def exact(z: float) -> Exact:
        return truth(name, z)

    edge = min(_crossing(lambda z: exact(z).complement >= tiny, 0.0, 2000.0), 2000.0)
    special = [
        0.0,
        edge,
        _crossing(lambda z: exact(z).first[0] >= tiny, 0.0, 2000.0),
        _crossing(lambda z: exact(z).complement >= limits.eps / 4, 0.0, 1e6),
        _crossing(lambda z: exact(z).complement >= tiny / 4, 0.0, 2000.0),
        *(math.ldexp(1.0, k) for k in range(-10, 11)),
        limits.tiny,
    ]
    if exact(0.1).second[0, 0] > 0:  # φ″ of the steep gates changes sign between 0 and the saturation
        special.append(_crossing(lambda z: exact(z).second[0, 0] > 0, 0.1, edge))
    lowest, highest = math.log2(limits.tiny) + math.log2(limits.eps), math.log2(limits.max)
    magnitudes = 2.0 ** np.linspace(lowest, highest - 0.01, 150)
    rng = np.random.default_rng(20240607)
    positive = [
        *(p for s in special for p in _neighbours(s, dtype)),
        *magnitudes.tolist(),
        *np.linspace(0.0, 1.02 * edge, 220).tolist(),
        *(edge * rng.random(200)).tolist(),
        *(2.0 * rng.random(100)).tolist(),
        float(limits.max),
        math.inf,
    ]
    kind = NUMPY[dtype]
    with np.errstate(over="ignore"):
        both = {float(kind(sign * p)) for p in positive for sign in (-1.0, 1.0)}
    return tuple((z,) for z in sorted(both))


def _pairs(dtype: torch.dtype) -> tuple[tuple[float, ...], ...]:
    limits = torch.finfo(dtype)
    edge = -math.log(limits.tiny)
    axis = [0.0, limits.tiny, 1e-9, 0.01, 0.5, 1.0, 2.5, 8.0, 17.0, 36.0, edge / 2, edge - 40, edge - 1, edge]
    axis += [edge + 1, 1.3 * edge, 4 * edge, 1e30, float(limits.max), math.inf]
    signed = [*axis, *(-a for a in axis)]
    rng = np.random.default_rng(7)
    scattered = rng.uniform(-1.05 * edge, 1.05 * edge, (250, 2)).tolist() + rng.normal(0, 4, (250, 2)).tolist()
    kind = NUMPY[dtype]
    return tuple(
        (float(kind(z)), float(kind(z_r))) for z, z_r in [*((a, b) for a in signed for b in signed), *scattered]
    )


def tensors(name: str, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(column, dtype=dtype) for column in zip(*points(name, dtype), strict=True))


def half_ulps(z: tuple[float, ...], dtype: torch.dtype) -> list[Any]:
    """Half an ulp of each pre-activation; none of an infinite one."""
    form = FORMATS[dtype]
    return [0 if math.isinf(x) else tolerances.Z_ULPS * form.ulp(mpmath.mpf(x)) for x in z]


def excess(result: float, exact: Any, slack: Any, dtype: torch.dtype, ulps: float = tolerances.ULPS) -> float:
    """The error in units of the bound: so many ulp of the result and the slack. Above 1 is too much.

    A result whose true value is below the smallest normal number may be anything from 0 to it.
    """
    form = FORMATS[dtype]
    if math.isnan(result):
        return math.inf
    if abs(exact) < form.tiny and result == 0:
        return 0.0
    if math.isinf(result):
        largest = mpmath.mpf(torch.finfo(dtype).max)
        return 0.0 if abs(exact) + slack >= largest and (result > 0) == (exact > 0) else math.inf
    return float(abs(mpmath.mpf(result) - exact) / (ulps * form.ulp(exact) + slack))


@dataclass
class Worst:
    """The worst ratio of a sweep and where it was met."""

    ratio: float = 0.0
    where: tuple[Any, ...] = ()

    def meet(self, ratio: float, *where: Any) -> None:
        if not ratio <= self.ratio:
            self.ratio, self.where = ratio, where

    def check(self) -> None:
        assert self.ratio <= 1.0, f"{self.ratio:.3g} times the bound at {self.where}"


Array = NDArray[np.float64]
