"""The operators inside torch: opcheck, numerical derivatives of first and second order, compile, export."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gatedrnn.engines.cpu import ops
from tests.engines.cpu.loop import (
    CELLS,
    GATES,
    WEIGHTS,
    Case,
    arguments,
    has_memory,
    leaves,
    loop,
    native,
    plain,
    run,
    scan,
)

CASES = [
    Case("lstm", "sigmoid", ragged=True, collect=True),
    Case("lstm", "fast", projection=2, reverse=True),
    Case("lstm_tied", "refine", recompute=True),
    Case("gru", "polynomial", coefficients=[1.0], ragged=True),
    Case("janet", "softsign", bias=False, recompute=True),
    Case("mgu", "refine", ragged=True),
    Case("nru", collect=True, memory=(4, 1, 0)),
]


# opcheck traces the operators many times over, which takes long; one case stays in the fast suite.
OPCHECKED = [CASES[0], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])]


@pytest.mark.parametrize("case", OPCHECKED, ids=lambda c: f"{c.cell}-{c.gate}")
def test_opcheck(case: Case) -> None:
    # With lengths the end of `kept` is not written, so its values cannot be compared.
    checks = ["test_schema", "test_autograd_registration", "test_faketensor"]
    checks += [] if case.ragged else ["test_aot_dispatch_dynamic"]
    torch.library.opcheck(ops.scan, arguments(case, leaves(case.tensors(), torch.float64)), test_utils=checks)
    t = leaves(case.tensors(), torch.float64)
    with torch.no_grad():
        *results, kept, threads = ops.scan(*arguments(case, t))
    given = [result.clone().requires_grad_() for result in results]
    *tensors, kernel, reverse, _, recompute, _ = arguments(case, t)
    options = (kernel, reverse, recompute, True)
    torch.library.opcheck(ops.scan_backward, (given, *tensors, results[0], kept, threads, *options))


def differentiable(case: Case, operator: bool = True):
    t = leaves(case.tensors(), torch.float64)
    names = [n for n, v in t.items() if v is not None and n != "lengths"]

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        results = native(case, {**t, **dict(zip(names, values, strict=True))}, operator=operator)
        return tuple(r for r in results if r.numel())

    return function, tuple(t[n] for n in names)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("cell", CELLS)
def test_gradcheck(cell: str, gate: str) -> None:
    case = Case(cell, gate, 3, 2, 2, 3, ragged=True, collect=has_memory(cell))
    case.coefficients = [0.5] if gate == "polynomial" else []
    torch.autograd.gradcheck(*differentiable(case))


@pytest.mark.parametrize("operator", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.cell}-{c.gate}")
def test_gradgradcheck(case: Case, operator: bool) -> None:
    case = replace(case, steps=2, inputs=1, hidden=2, projection=min(case.projection, 1))
    torch.autograd.gradgradcheck(*differentiable(case, operator))


def test_the_operators_take_lists() -> None:
    """One signature for every cell: what differs is in the lists and in the kernel string."""
    assert str(ops.scan._opoverload._schema) == (
        "gatedrnn::scan(Tensor input, Tensor[] state, Tensor[] weights, Tensor? lengths, Tensor? batch_sizes, "
        "str kernel, bool reverse, bool keep, bool recompute, bool collect) -> Tensor[]"
    )
    assert str(ops.scan_backward._opoverload._schema) == (
        "gatedrnn::scan_backward(Tensor[] gradients, Tensor input, Tensor[] state, Tensor[] weights, Tensor? lengths, "
        "Tensor? batch_sizes, Tensor output, Tensor kept, Tensor threads, str kernel, bool reverse, bool recompute, "
        "bool input_gradient) -> Tensor[]"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.cell}-{c.gate}")
def test_without_the_operator_nothing_differs(case: Case) -> None:
    t = case.tensors()
    with_it, without = run(case, native, t, torch.float64), run(case, plain, t, torch.float64)
    assert with_it.keys() == without.keys()
    assert all(torch.equal(with_it[name], without[name]) for name in with_it)


def test_backward_twice() -> None:
    function, values = differentiable(Case(steps=6))
    result = function(*values)[0].pow(2).sum()
    first = torch.autograd.grad(result, values, retain_graph=True)
    second = torch.autograd.grad(result, values)
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_some_results_without_gradient() -> None:
    """Only the last state enters the loss; only some arguments want a gradient."""
    case = Case("lstm", "fast", 4, 3, 2, 5)
    t, u = leaves(case.tensors(), torch.float64), leaves(case.tensors(), torch.float64)
    for some in (t, u):
        some["input"].requires_grad_(False)
        some["weight_ih"].requires_grad_(False)
    native(case, t)[2].sum().backward()
    loop(case, u)[2].sum().backward()
    assert t["input"].grad is None and t["weight_ih"].grad is None
    for name in ("h_0", "c_0", "weight_hh", "bias_ih", "bias_hh"):
        torch.testing.assert_close(t[name].grad, u[name].grad)


def test_not_kept_has_no_gradient() -> None:
    t = leaves(Case().tensors(), torch.float64)
    with pytest.raises(RuntimeError, match="keep=True"):
        native(Case(), t, keep=False)[0].sum().backward()
    with torch.no_grad():
        torch.testing.assert_close(native(Case(), t, keep=False)[0], native(Case(), t)[0], rtol=0, atol=0)


@pytest.mark.parametrize("recompute", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cell", CELLS)
def test_compile_with_dynamic_steps(cell: str, recompute: bool) -> None:
    case = Case(cell, "fast", recompute=recompute)
    t = leaves(case.tensors(), torch.float64)
    weights = {n: v for n, v in t.items() if n.startswith(("weight", "bias")) and v is not None}

    text = str(case.kernel(t))

    def function(x: Tensor) -> Tensor:
        return scan(arguments(case, {**t, "input": x}, text=text), operator=True)[0].sin()

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    for steps in (3, 5, 9):
        x = torch.randn(steps, case.batch, case.inputs, dtype=torch.float64)
        found = torch.autograd.grad(compiled(x).sum(), list(weights.values()))
        expected = torch.autograd.grad(function(x).sum(), list(weights.values()))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


class Layer(torch.nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case, self.rest = case, {}
        for name, value in case.tensors().items():
            if name.startswith(("weight", "bias")) and value is not None:
                self.register_parameter(name, torch.nn.Parameter(value))

    def forward(self, x: Tensor) -> Tensor:
        weights = {name: getattr(self, name, None) for name in WEIGHTS}
        zero = x.new_zeros(x.shape[1], self.case.hidden)
        tensors = {"input": x, "h_0": zero, "c_0": zero, "lengths": None, **weights}
        return ops.scan(*arguments(self.case, tensors, keep=False))[0]


def test_export_with_dynamic_steps() -> None:
    layer = Layer(Case("lstm", "fast")).requires_grad_(False)
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim("steps", min=2, max=1000)},))
    for steps in (4, 17):
        x = torch.randn(steps, 2, 3, dtype=torch.float64)
        torch.testing.assert_close(exported.module()(x), layer(x))
