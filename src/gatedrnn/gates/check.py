"""check_gate: check that a custom gate has the properties that the theory and the layers rely on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gatedrnn.gates.base import Gate, SigmoidOf

# Where the properties are looked at: dense about 0, to beyond the saturation of the steepest gates.
_POINTS = torch.cat(
    [torch.logspace(-6, -1, 26, dtype=torch.float64), torch.linspace(0.11, 12.0, 1190, dtype=torch.float64)]
)
_TOLERANCE = 1e-6  # of a central difference with step 1e-5·max(1, z), whose own error is about 1e-10


def check_gate(gate: Gate) -> None:
    """Raise ValueError naming the property that fails and the z where it does.

    Checked, for α = logit φ (the auxiliary pre-activation of a gate with two is held at 0): α is odd, increasing,
    α′(0) = 1, and the derivative agrees with the function; the inverse leads back; very large z and ±inf give no NaN.
    """
    alpha, slope = _alpha(gate)
    s = alpha(_POINTS)
    _refuse(gate, "α is NaN", _POINTS, torch.isnan(s))
    _refuse(gate, "α is NaN", -_POINTS, torch.isnan(alpha(-_POINTS)))
    usable = torch.isfinite(s) & (s.abs() < 500)  # beyond, e^−s is no number
    z, s = _POINTS[usable], s[usable]
    mirrored = alpha(-z)
    _refuse(gate, "α is not odd, α(−z) ≠ −α(z)", z, ~((mirrored + s).abs() <= 1e-12 * s.abs().clamp(min=1e-12)))
    at_zero = alpha(torch.zeros(1, dtype=torch.float64))
    _refuse(gate, "α is not odd, α(0) ≠ 0", torch.zeros(1), at_zero != 0)
    _refuse(gate, "α is not increasing", z[1:], torch.diff(s) <= 0)

    zero = torch.zeros(1, dtype=torch.float64)
    _refuse(gate, "α′(0) ≠ 1", zero, ~((_difference(alpha, zero) - 1).abs() <= _TOLERANCE))
    for points in (z, -z, zero):
        # Where α″ jumps, the error of the difference is of the order of its step: a shorter one decides there.
        agrees = _agrees(slope(points), _difference(alpha, points))
        agrees |= _agrees(slope(points), _difference(alpha, points, 1e-7))
        _refuse(gate, "the derivative does not agree with the function", points, ~agrees)

    root = _first(gate.inverse_complement(torch.sigmoid(-s)))
    _refuse(gate, "the inverse does not invert the function", z, ~((root - z).abs() <= 1e-6 * z))
    for dtype in (torch.float64, torch.float32):
        far = torch.tensor([torch.inf, torch.finfo(dtype).max, torch.finfo(dtype).max ** 0.5], dtype=dtype)
        far = torch.cat([far, -far])
        aux = [torch.zeros_like(far)] * (gate.preactivations - 1)
        for result in (gate.value(far, *aux), gate.complement(far, *aux), _first(gate.derivative(far, *aux))):
            _refuse(gate, f"the value or the derivative is NaN ({dtype})", far, torch.isnan(result))


def _alpha(gate: Gate) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    if isinstance(gate, SigmoidOf):
        return gate.alpha, gate.alpha_derivative

    def with_auxiliary(z: Tensor) -> list[Tensor]:
        return [z, *[torch.zeros_like(z)] * (gate.preactivations - 1)]

    def alpha(z: Tensor) -> Tensor:
        return gate.log_value(*with_auxiliary(z)) - gate.log_complement(*with_auxiliary(z))

    def slope(z: Tensor) -> Tensor:
        arguments = with_auxiliary(z)
        return _first(gate.derivative(*arguments)) / (gate.value(*arguments) * gate.complement(*arguments))

    return alpha, slope


def _first(result: Tensor | tuple[Tensor, ...]) -> Tensor:
    return result[0] if isinstance(result, tuple) else result


def _agrees(slope: Tensor, difference: Tensor) -> Tensor:
    return (slope - difference).abs() <= _TOLERANCE * difference.abs().clamp(min=1e-3)


def _difference(function: Callable[[Tensor], Tensor], z: Tensor, step: float = 1e-4) -> Tensor:
    """Central difference with one step of Richardson's extrapolation."""
    h = step * z.abs().clamp(min=1e-2)

    def central(step: Tensor) -> Tensor:
        return (function(z + step) - function(z - step)) / ((z + step) - (z - step))

    return (4.0 * central(h / 2) - central(h)) / 3.0


def _refuse(gate: Gate, property_that_fails: str, z: Tensor, where: Tensor) -> None:
    if bool(where.any()):
        raise ValueError(f"{gate!r}: {property_that_fails}, at z = {z[where][0].item():g}")
