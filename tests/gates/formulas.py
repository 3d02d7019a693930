"""The gates in mathematics, written once per gate: with mpmath the truth, with numpy a float64 sweep.

A gate of the form σ∘α gives (α, α′, α″) at z; every other number of it follows. Refine is written out.
`FORMULAS` is keyed by the names of `GATES`; a test fails if one is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

mpmath.mp.prec = 200

Number = Any  # an mpf, or a numpy array


@dataclass(frozen=True)
class Exact:
    """What a gate is at one place (mpmath) or at many (numpy)."""

    value: Number
    complement: Number
    first: tuple[Number, ...]
    """∂φ for each pre-activation."""
    second: dict[tuple[int, int], Number]
    """∂²φ for each pair of pre-activations."""
    size: dict[tuple[int, int], Number]
    """The sum of the absolute terms of `second`."""
    stretch: Number
    """|z|·α′: how much a relative error of z or s is magnified in e^−s."""


def sigmoid(m: Any, z: Number) -> tuple[Number, Number, Number]:
    return z, 1 + 0 * z, 0 * z


def softsign(m: Any, z: Number) -> tuple[Number, Number, Number]:
    a, sign = m.fabs(z), m.sign(z)
    return sign * m.log1p(a), 1 / (1 + a), -sign / (1 + a) ** 2


def fast(m: Any, z: Number) -> tuple[Number, Number, Number]:
    return m.sinh(z), m.cosh(z), m.sinh(z)


def iterated_fast(m: Any, z: Number) -> tuple[Number, Number, Number]:
    w, dw = m.sinh(z), m.cosh(z)
    return m.sinh(w), m.cosh(w) * dw, m.sinh(w) * dw**2 + m.cosh(w) * w


def polynomial(m: Any, z: Number, coefficients: tuple[float, ...] = (1.0,)) -> tuple[Number, Number, Number]:
    s, slope, bend = z, 1 + 0 * z, 0 * z
    for k, c in enumerate(coefficients):
        n = 2 * k + 3
        s = s + c * z**n
        slope = slope + n * c * z ** (n - 1)
        bend = bend + n * (n - 1) * c * z ** (n - 2)
    return s, slope, bend


Alpha = Callable[[Any, Number], tuple[Number, Number, Number]]


def sigmoid_of(alpha: Alpha, saturated: float) -> Callable[..., Exact]:
    """φ = σ∘α. Beyond |z| = saturated, 1−φ is below every number of every dtype, and z may stop there."""

    def exact(m: Any, z: Number) -> Exact:
        z = np.clip(z, -saturated, saturated) if m is np else max(min(z, m.mpf(saturated)), -m.mpf(saturated))
        s, slope, bend = alpha(m, z)
        f, q = 1 / (1 + m.exp(-s)), 1 / (1 + m.exp(s))
        terms = f * q * bend, -f * q * slope**2 * m.tanh(s / 2)
        return Exact(
            value=f,
            complement=q,
            first=(f * q * slope,),
            second={(0, 0): terms[0] + terms[1]},
            size={(0, 0): abs(terms[0]) + abs(terms[1])},
            stretch=abs(z) * slope,
        )

    return exact


def refine(m: Any, z: Number, z_r: Number) -> Exact:
    clip = (lambda x: np.clip(x, -10000, 10000)) if m is np else (lambda x: max(min(x, m.mpf(10000)), -m.mpf(10000)))
    z, z_r = clip(z), clip(z_r)
    f, q = 1 / (1 + m.exp(-z)), 1 / (1 + m.exp(z))
    r, p = 1 / (1 + m.exp(-z_r)), 1 / (1 + m.exp(z_r))
    turn, turn_r = -m.tanh(z / 2), -m.tanh(z_r / 2)  # q−f and p−r
    along = r * q + p * f
    return Exact(
        value=f * (f + 2 * r * q),
        complement=q * (q + 2 * p * f),
        first=(2 * f * q * along, 2 * f * q * r * p),
        second={
            (0, 0): 2 * f * q * (turn * along + f * q * turn_r),
            (0, 1): 2 * f * q * r * p * turn,
            (1, 1): 2 * f * q * r * p * turn_r,
        },
        size={
            (0, 0): 2 * f * q * (abs(turn) * along + f * q),
            (0, 1): 2 * f * q * r * p,
            (1, 1): 2 * f * q * r * p,
        },
        stretch=abs(z) + abs(z_r),
    )


FORMULAS: dict[str, Callable[..., Exact]] = {
    "sigmoid": sigmoid_of(sigmoid, 1e4),
    "softsign": sigmoid_of(softsign, 1.7976931348623157e308),
    "fast": sigmoid_of(fast, 10.0),
    "iterated_fast": sigmoid_of(iterated_fast, 3.0),
    "polynomial": sigmoid_of(polynomial, 30.0),
    "refine": refine,
}

#: The same inverse, where a closed form exists: z with 1−φ(z) = y. Polynomial: a root of the formula itself.
INVERSE_COMPLEMENTS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": lambda y: mpmath.log1p(-y) - mpmath.log(y),
    "softsign": lambda y: 1 / y - 2 if y <= 0.5 else 2 - 1 / (1 - y),
    "fast": lambda y: mpmath.asinh(mpmath.log1p(-y) - mpmath.log(y)),
    "iterated_fast": lambda y: mpmath.asinh(mpmath.asinh(mpmath.log1p(-y) - mpmath.log(y))),
    "polynomial": lambda y: _cubic_root(mpmath.log1p(-y) - mpmath.log(y)),
    "refine": lambda y: mpmath.log1p(-y) - mpmath.log(y),
}


def _cubic_root(s: Any) -> Any:
    """The real root of z + z³ = s: 2/√3 · sinh(asinh(3√3 s/2)/3)."""
    root3 = mpmath.sqrt(3)
    return 2 / root3 * mpmath.sinh(mpmath.asinh(3 * root3 * s / 2) / 3)


@functools.cache
def truth(name: str, *z: float) -> Exact:
    return FORMULAS[name](mpmath, *(mpmath.mpf(x) for x in z))


def log_of(value: Any, complement: Any) -> Any:
    """log value, from whichever of the two is small."""
    return mpmath.log(value) if value < 0.5 else mpmath.log1p(-complement)
