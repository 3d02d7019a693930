"""Rule by rule, every gate of the registry against mpmath in float32 and float64."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import mpmath
import pytest
import torch

from gatedrnn.gates import GATES
from tests import tolerances
from tests.gates.formulas import FORMULAS, INVERSE_COMPLEMENTS, log_of, truth
from tests.gates.points import DTYPES, FORMATS, Worst, excess, half_ulps, points, tensors

EVERY = [pytest.param(name, dtype, id=f"{name}-{str(dtype)[6:]}") for name, dtype in product(GATES, DTYPES)]

# Where the formulas stop at saturation, value or complement are below this.
BEYOND = mpmath.mpf("1e-4300")


def test_every_gate_has_a_formula() -> None:
    assert set(FORMULAS) == set(GATES)
    assert set(INVERSE_COMPLEMENTS) == set(GATES)


def test_refine_formula_is_the_papers() -> None:
    for z, z_r in [(0.3, -1.2), (-5.0, 2.0), (7.0, 7.0)]:
        f, r = (1 / (1 + mpmath.exp(-mpmath.mpf(x))) for x in (z, z_r))
        paper = r * (1 - (1 - f) ** 2) + (1 - r) * f**2
        assert abs(truth("refine", z, z_r).value - paper) < 1e-50
        assert abs(truth("refine", z, z_r).complement - (1 - paper)) < 1e-50


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("method", ["value", "complement"])
def test_value_and_complement(name: str, dtype: torch.dtype, method: str) -> None:
    results = getattr(GATES[name](), method)(*tensors(name, dtype))
    worst = Worst()
    for z, result in zip(points(name, dtype), results.tolist(), strict=True):
        exact = truth(name, *z)
        slack = sum(abs(d) * h for d, h in zip(exact.first, half_ulps(z, dtype), strict=True))
        assert 0 <= result <= 1
        worst.meet(excess(result, getattr(exact, method), slack, dtype), z, result)
    worst.check()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_derivative(name: str, dtype: torch.dtype) -> None:
    slopes = GATES[name]().derivative(*tensors(name, dtype))
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    assert len(slopes) == GATES[name].preactivations
    for i, slope in enumerate(slopes):
        worst = Worst()
        for z, result in zip(points(name, dtype), slope.tolist(), strict=True):
            exact = truth(name, *z)
            seconds = [exact.second[min(i, j), max(i, j)] for j in range(len(z))]
            slack = sum(abs(d) * h for d, h in zip(seconds, half_ulps(z, dtype), strict=True))
            worst.meet(excess(result, exact.first[i], slack, dtype), i, z, result)
        worst.check()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_gradient_is_the_derivative(name: str, dtype: torch.dtype) -> None:
    gate = GATES[name]()
    z = [x.requires_grad_() for x in tensors(name, dtype)]
    slopes = gate.derivative(*z)
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    for method, sign in ((gate.value, 1.0), (gate.complement, -1.0)):
        gradients = torch.autograd.grad(method(*z).sum(), z)
        for gradient, slope in zip(gradients, slopes, strict=True):
            assert torch.equal(gradient, sign * slope)


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_second_derivative(name: str, dtype: torch.dtype) -> None:
    gate, form, eps = GATES[name](), FORMATS[dtype], torch.finfo(dtype).eps
    z = [x.requires_grad_() for x in tensors(name, dtype)]
    slopes = gate.derivative(*z)
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    for i, slope in enumerate(slopes):
        for j, gradient in enumerate(torch.autograd.grad(slope.sum(), z, retain_graph=True)):
            worst = Worst()
            for at, result in zip(points(name, dtype), gradient.tolist(), strict=True):
                if name == "softsign" and at == (0.0,):
                    assert abs(result) == 0.25  # φ″ jumps from ¼ to −¼
                    continue
                exact = truth(name, *at)
                true, size = (t[min(i, j), max(i, j)] for t in (exact.second, exact.size))
                if result == 0 and (exact.first[i] < form.tiny or size < form.tiny):
                    continue  # flushed
                bound = eps * size * (tolerances.SECOND_EPS + exact.stretch) + tolerances.SECOND_EPS * form.ulp(0)
                worst.meet(float(abs(mpmath.mpf(result) - true) / bound), i, j, at, result)
            worst.check()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("method", ["log_value", "log_complement"])
def test_logarithms(name: str, dtype: torch.dtype, method: str) -> None:
    results = getattr(GATES[name](), method)(*tensors(name, dtype))
    worst = Worst()
    for z, result in zip(points(name, dtype), results.tolist(), strict=True):
        exact = truth(name, *z)
        pair = (exact.value, exact.complement) if method == "log_value" else (exact.complement, exact.value)
        if name == "softsign" and math.isinf(z[0]):
            continue  # see test_limits
        if pair[0] < BEYOND:  # the formulas stop at saturation; the logarithm goes on
            assert result <= mpmath.log(BEYOND)
            continue
        slack = sum(abs(d / pair[0]) * h for d, h in zip(exact.first, half_ulps(z, dtype), strict=True))
        worst.meet(excess(result, log_of(*pair), slack, dtype, tolerances.LOG_ULPS), z, result)
    worst.check()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_time_scale(name: str, dtype: torch.dtype) -> None:
    results = GATES[name]().time_scale(*tensors(name, dtype))
    assert results.dtype == dtype
    worst, longest = Worst(), 0.0
    for z, result in zip(points(name, dtype), results.tolist(), strict=True):
        exact = truth(name, *z)
        if name == "softsign" and math.isinf(z[0]):
            continue  # see test_limits
        if exact.value < BEYOND:
            assert 0 <= result <= -1 / mpmath.log(BEYOND)
            continue
        true = -1 / log_of(exact.value, exact.complement)
        slack = sum(true**2 * abs(d / exact.value) * h for d, h in zip(exact.first, half_ulps(z, dtype), strict=True))
        worst.meet(excess(result, true, slack, dtype, tolerances.LOG_ULPS), z, result)
        longest = max(longest, result if math.isfinite(result) else 0.0)
    worst.check()
    assert longest > torch.finfo(dtype).max / 64


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("method", ["value", "complement", "log_value", "log_complement", "derivative", "time_scale"])
def test_nan_only_for_nan_to_the_second_derivative(name: str, dtype: torch.dtype, method: str) -> None:
    z = [x.requires_grad_() for x in tensors(name, dtype)]
    results: Any = getattr(GATES[name](), method)(*z)
    for result in results if isinstance(results, tuple) else (results,):
        assert not result.isnan().any()
        if method in ("value", "complement", "derivative"):
            assert result.isfinite().all()
        for first in torch.autograd.grad(result.sum(), z, create_graph=True):
            assert not first.isnan().any(), [x[first.isnan()][:5].tolist() for x in z]
            if method in ("value", "complement", "derivative"):
                assert first.isfinite().all()
            if method == "time_scale":
                continue  # finite nowhere near saturation: (1/q)″ overflows before 1/q does
            for second in torch.autograd.grad(first.sum(), z, retain_graph=True, allow_unused=True):
                if second is not None:
                    assert not second.isnan().any(), [x[second.isnan()][:5].tolist() for x in z]


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_nan_stays_nan(name: str, dtype: torch.dtype) -> None:
    gate = GATES[name]()
    z = [torch.full((3,), torch.nan, dtype=dtype, requires_grad=True) for _ in range(gate.preactivations)]
    for method in ("value", "complement", "log_value", "log_complement", "derivative", "time_scale"):
        results: Any = getattr(gate, method)(*z)
        for result in results if isinstance(results, tuple) else (results,):
            assert result.isnan().all()
            for gradient in torch.autograd.grad(result.sum(), z, create_graph=True):
                assert gradient.isnan().all()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_limits(name: str, dtype: torch.dtype) -> None:
    gate = GATES[name]()
    ends = torch.tensor([-torch.inf, torch.inf], dtype=dtype)
    rest = [torch.zeros_like(ends)] * (gate.preactivations - 1)
    assert gate.value(ends, *rest).tolist() == [0.0, 1.0]
    assert gate.complement(ends, *rest).tolist() == [1.0, 0.0]
    assert gate.log_value(ends, *rest).tolist() == [-math.inf, 0.0]
    assert gate.log_complement(ends, *rest).tolist() == [0.0, -math.inf]
    assert gate.time_scale(ends, *rest).tolist() == [0.0, math.inf]
    slopes = gate.derivative(ends, *rest)
    for slope in slopes if isinstance(slopes, tuple) else (slopes,):
        assert slope.tolist() == [0.0, 0.0]
