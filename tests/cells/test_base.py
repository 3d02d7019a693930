"""What cells share: dtypes of products, views of the biases, frozen values, parameter shapes."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from gatedrnn.cells.base import forget, linear, wide
from gatedrnn.gates import resolve
from tests.conformance.cases import ALL_CASES, CELL_CASES, GATED_CASES, Case

I, H = 3, 4  # noqa: E741


def test_wide_and_linear() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert wide(torch.ones(2, dtype=dtype)).dtype == torch.float32
    assert wide(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    x = torch.tensor([[1.0, 2.0**-20]])
    weight = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    assert torch.equal(linear(x, weight), x @ weight.T)
    product = linear(x, weight.bfloat16())  # the product in 16 bits, the result in 32
    assert product.dtype == torch.float32
    assert torch.equal(product, torch.tensor([[1.0, 2.0**-20]]))


def test_forget_takes_the_auxiliary_along() -> None:
    z, r = torch.zeros(1), torch.ones(1)
    assert forget({"f": z, "g": r}) == (z,)
    assert forget({"f": z, "aux": r}) == (z, r)


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_cells_are_frozen_and_compare_by_value(case: Case) -> None:
    cell, same = case.layer(I, H).cell, case.layer(5, 6).cell
    assert cell == same
    assert hash(cell) == hash(same)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cell.anything = 1
    others = [c.layer(I, H).cell for c in CELL_CASES if c != case]
    assert cell not in others


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_parameter_shapes_are_the_layer_s(case: Case, bias: bool) -> None:
    layer, step = case.layer(I, H, bias=bias), case.step(I, H, bias=bias)
    shapes = layer.cell.parameter_shapes(I, H, bias, case.aux)
    assert {name: tuple(p.shape) for name, p in step.named_parameters()} == shapes
    assert {name.removesuffix("_l0"): tuple(p.shape) for name, p in layer.named_parameters()} == shapes
    assert list(shapes) == sorted(shapes, key=lambda name: name.endswith("_aux"))  # those of the auxiliary last
    if not bias:
        assert not any(name.startswith("b") for name in shapes)


@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_forget_biases_are_views(case: Case) -> None:
    """Writing to them moves the gate, by the same amount for each of the biases that sum up."""
    step = case.step(I, H)
    cell, gate = step.cell, resolve(case.gate or "")
    x = (torch.randn(1, I, dtype=torch.float64),)

    def value() -> torch.Tensor:
        with torch.no_grad():
            w = cell.prepare(dict(step.named_parameters()))
            state = (torch.zeros(1, H, dtype=torch.float64),) * len(case.states)
            a = cell.preactivations(w, cell.project(w, x[0]), state)
            assert len(forget(a)) == gate.preactivations
            return torch.stack(forget(a))

    before = value()
    groups = list(cell.forget_biases(dict(step.named_parameters())))
    assert len(groups) == gate.preactivations
    for index, group in enumerate(groups):
        for bias in group:
            with torch.no_grad():
                bias.add_(0.25)
            after = value()
            expected = before.clone()
            expected[index] += 0.25
            torch.testing.assert_close(after, expected)
            before = after


@pytest.mark.parametrize("case", [c for c in ALL_CASES if c.aux], ids=str)
def test_refine_with_zero_auxiliary_is_the_sigmoid(case: Case) -> None:
    """r = ½ gives g = f: values and gradients of the shared parameters."""
    torch.manual_seed(0)
    refine, plain = case.layer(I, H), Case(case.cell, "sigmoid", case.options).layer(I, H)
    shared = [name for name, _ in plain.named_parameters()]
    with torch.no_grad():
        for name, parameter in refine.named_parameters():
            parameter.copy_(plain.get_parameter(name) if name in shared else torch.zeros_like(parameter))
    x = torch.randn(6, 2, I, dtype=torch.float64)
    torch.testing.assert_close(refine(x), plain(x), rtol=1e-12, atol=1e-12)
    slopes = [
        torch.autograd.grad(m(x)[0].pow(2).sum(), [m.get_parameter(name) for name in shared]) for m in (refine, plain)
    ]
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-11, atol=1e-11)
