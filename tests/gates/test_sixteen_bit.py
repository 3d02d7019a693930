"""float16 and bfloat16 over all 65,536 inputs: computed in float32, rounded once."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from gatedrnn.gates import GATES
from tests import tolerances
from tests.gates.formulas import FORMULAS
from tests.gates.points import ONE_PREACTIVATION

SIXTEEN = [torch.float16, torch.bfloat16]
AUXILIARY = [-torch.inf, -20.0, -1.0, 0.0, 1.0, 20.0, torch.inf]
EVERY = [
    pytest.param(name, auxiliary, dtype, id=f"{name}-{auxiliary}-{str(dtype)[6:]}")
    for name, dtype in product(GATES, SIXTEEN)
    for auxiliary in (AUXILIARY if name not in ONE_PREACTIVATION else [None])
]


def every_number(dtype: torch.dtype) -> torch.Tensor:
    """All that are not NaN, in increasing order."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    numbers = bits.view(dtype)
    return numbers[~numbers.isnan()].sort().values


def arguments(dtype: torch.dtype, auxiliary: float | None) -> list[torch.Tensor]:
    z = every_number(dtype)
    return [z] if auxiliary is None else [z, torch.full_like(z, auxiliary)]


def ulp(x: np.ndarray[Any, Any], dtype: torch.dtype) -> np.ndarray[Any, Any]:
    digits, smallest = (11, -14) if dtype == torch.float16 else (8, -126)
    exponent = np.maximum(np.frexp(x)[1] - 1, smallest)
    return np.asarray(np.ldexp(1.0, exponent - digits + 1))


@pytest.mark.parametrize(("name", "auxiliary", "dtype"), EVERY)
def test_rounded_once_and_monotone(name: str, auxiliary: float | None, dtype: torch.dtype) -> None:
    gate, z = GATES[name](), [x.requires_grad_() for x in arguments(dtype, auxiliary)]
    with np.errstate(over="ignore"):
        exact = FORMULAS[name](np, *(x.detach().double().numpy() for x in z))
    value, complement, slope = gate.value(*z), gate.complement(*z), gate.derivative(*z)
    slope = slope[0] if isinstance(slope, tuple) else slope
    flushed = torch.finfo(torch.float32).tiny
    for result, true in ((value, exact.value), (complement, exact.complement), (slope, exact.first[0])):
        assert result.dtype == dtype
        assert result.isfinite().all()
        # Rule 6 with float32 inside: the rounding of s there is |z|·α′ float32 ulps of the result.
        inside = 2.0**-24 * np.abs(true) * (8 + 2 * np.minimum(exact.stretch, 1e4))
        bound = tolerances.ROUNDED_ONCE * ulp(true, dtype) + inside
        wrong = np.abs(result.detach().double().numpy() - true) > bound
        wrong &= ~((true < flushed) & (result.detach().double().numpy() == 0))
        assert not wrong.any(), (z[0][torch.tensor(wrong)][:5], result[torch.tensor(wrong)][:5], true[wrong][:5])
    assert bool((value.diff() >= 0).all())
    assert bool((complement.diff() <= 0).all())
    for method, sign in ((gate.value, 1.0), (gate.complement, -1.0)):
        (gradient, *_) = torch.autograd.grad(method(*z).sum(), z)
        assert gradient.dtype == dtype
        assert torch.equal(gradient, sign * slope)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("dtype", SIXTEEN)
def test_nan_and_time_scales(name: str, dtype: torch.dtype) -> None:
    gate = GATES[name]()
    nan = [torch.full((2,), torch.nan, dtype=dtype)] * gate.preactivations
    for method in (gate.value, gate.complement, gate.log_value, gate.time_scale):
        assert method(*nan).isnan().all()
    z = arguments(dtype, None if gate.preactivations == 1 else 0.0)
    scales = gate.time_scale(*z)
    assert scales.dtype == torch.float32
    assert torch.equal(scales, gate.time_scale(*(x.float() for x in z)))
    assert bool((scales >= 0).all())


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_PREACTIVATION)
def test_dense_float32_sweep(name: str) -> None:
    """Every 997th float32 against the float64 formula: 4.3 million points."""
    bits = torch.arange(-(2**31), 2**31, 997, dtype=torch.int64).to(torch.int32)
    z = bits.view(torch.float32)
    z = z[z.isfinite()].sort().values
    with np.errstate(over="ignore"):
        exact = FORMULAS[name](np, z.double().numpy())
    gate, tiny = GATES[name](), torch.finfo(torch.float32).tiny
    half = tolerances.Z_ULPS * np.spacing(np.abs(z.numpy())).astype(np.float64)
    for result, true, change in (
        (gate.value(z), exact.value, exact.first[0]),
        (gate.complement(z), exact.complement, exact.first[0]),
        (gate.derivative(z), exact.first[0], np.abs(exact.second[0, 0])),
    ):
        found = result.double().numpy()
        spacing = np.maximum(np.spacing(true.astype(np.float32)), 2.0**-149).astype(np.float64)
        good = np.abs(found - true) <= tolerances.ULPS * spacing + np.abs(change) * half + 1e-13 * true
        good |= (found == 0) & (true < tiny)
        assert good.all(), (z[torch.tensor(~good)][:5], found[~good][:5], true[~good][:5])
    assert bool((gate.value(z).diff() >= -2 * torch.finfo(torch.float32).eps * gate.value(z)[1:]).all())
