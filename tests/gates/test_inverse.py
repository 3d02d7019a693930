"""φ⁻¹ from f and from 1−f, against closed forms in mpmath, for every gate of the registry."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor

from gatedrnn.gates import GATES
from gatedrnn.gates.stable import solve_increasing
from tests import tolerances
from tests.gates.formulas import INVERSE_COMPLEMENTS, truth
from tests.gates.points import DTYPES, FORMATS, Worst

EVERY = [pytest.param(name, dtype, id=f"{name}-{str(dtype)[6:]}") for name, dtype in product(GATES, DTYPES)]


def probabilities(dtype: torch.dtype) -> torch.Tensor:
    tiny = torch.finfo(dtype).tiny
    small = 2.0 ** np.linspace(math.log2(tiny), -1.0, 300)
    middle = np.linspace(0.01, 0.99, 150)
    top = 1.0 - 2.0 ** np.linspace(1 - FORMATS[dtype].digits, -2, 80)
    p = torch.tensor(np.concatenate([[tiny], small, middle, top]), dtype=dtype)
    return p[(p > 0) & (p < 1)]


def first(result: torch.Tensor | tuple[torch.Tensor, ...]) -> torch.Tensor:
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("method", ["inverse", "inverse_complement"])
def test_against_closed_form(name: str, dtype: torch.dtype, method: str) -> None:
    p = probabilities(dtype)
    roots = first(getattr(GATES[name](), method)(p))
    assert roots.dtype == dtype
    worst = Worst()
    for y, root in zip(p.tolist(), roots.tolist(), strict=True):
        exact = INVERSE_COMPLEMENTS[name](mpmath.mpf(y)) * (1 if method == "inverse_complement" else -1)
        bound = tolerances.INVERSE_ULPS * FORMATS[dtype].ulp(exact)
        worst.meet(float(abs(mpmath.mpf(root) - exact) / bound), y, root)
    worst.check()


@pytest.mark.parametrize("name", GATES)
def test_closed_forms_invert_the_formulas(name: str) -> None:
    for y in ("1e-300", "1e-20", "0.2", "0.5", "0.9"):
        z = INVERSE_COMPLEMENTS[name](mpmath.mpf(y))
        rest = [mpmath.mpf(0)] * (GATES[name].preactivations - 1)
        assert abs(truth(name, z, *rest).complement / mpmath.mpf(y) - 1) < mpmath.mpf("1e-40")


@pytest.mark.parametrize("name", GATES)
def test_refine_leaves_the_auxiliary_at_zero(name: str) -> None:
    roots = GATES[name]().inverse(torch.tensor([0.1, 0.9]))
    rest = roots[1:] if isinstance(roots, tuple) else ()
    assert len(rest) == GATES[name].preactivations - 1
    for auxiliary in rest:
        assert auxiliary.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_there_and_back(name: str, dtype: torch.dtype) -> None:
    gate, p = GATES[name](), probabilities(dtype)
    for back, there in ((gate.inverse, gate.value), (gate.inverse_complement, gate.complement)):
        roots = back(p)
        again = there(*(roots if isinstance(roots, tuple) else (roots,)))
        slope = first(gate.derivative(*(roots if isinstance(roots, tuple) else (roots,))))
        # Rule 6 for the way back, and INVERSE_ULPS of z for the way there.
        bound = tolerances.ULPS * p + (tolerances.INVERSE_ULPS + tolerances.Z_ULPS) * slope * first(roots).abs()
        miss = (again - p).abs() > torch.finfo(dtype).eps * bound
        miss &= ~((again == 0) & (p < (1 + 1e-3) * torch.finfo(dtype).tiny))
        assert not miss.any(), (p[miss][:5], again[miss][:5])


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.25, 1.5, math.nan, math.inf])
def test_outside_the_open_interval(name: str, bad: float) -> None:
    gate = GATES[name]()
    for method in (gate.inverse, gate.inverse_complement):
        with pytest.raises(ValueError, match=rf"\(0, 1\).* = {bad}"):
            method(torch.tensor([0.5, bad]))
        with pytest.raises(ValueError, match=rf"= {bad}"):
            method(bad)


@pytest.mark.parametrize("name", GATES)
def test_gradient_of_the_inverse(name: str) -> None:
    gate = GATES[name]()
    p = torch.tensor([1e-30, 1e-3, 0.2, 0.5, 0.7, 0.999], dtype=torch.float64, requires_grad=True)
    z = gate.inverse_complement(p)
    z = z if isinstance(z, tuple) else (z,)
    (gradient,) = torch.autograd.grad(z[0].sum(), p)
    slopes = gate.derivative(*(x.detach() for x in z))
    torch.testing.assert_close(gradient, -1 / first(slopes), rtol=1e-11, atol=0)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bit(name: str, dtype: torch.dtype) -> None:
    p = torch.tensor([2**-14, 0.01, 0.5, 0.731, 0.99], dtype=dtype)
    root = first(GATES[name]().inverse(p))
    assert root.dtype == dtype
    assert torch.equal(root, first(GATES[name]().inverse(p.double())).to(dtype))


def test_a_bounded_function_has_no_solution_beyond_its_bound() -> None:
    def bounded(z: Tensor) -> Tensor:
        return 2.0 * torch.tanh(z / 2.0)

    def slope(z: Tensor) -> Tensor:
        return 1.0 - torch.tanh(z / 2.0) ** 2

    z = solve_increasing(bounded, slope, torch.tensor([1.9, -1.9]))
    torch.testing.assert_close(bounded(z), torch.tensor([1.9, -1.9]))
    with pytest.raises(ValueError, match=r"α\(z\) = 2.5: α does not exceed 2"):
        solve_increasing(bounded, slope, torch.tensor([1.0, -2.5]))
