"""The operators inside torch: opcheck, numerical derivatives of first and second order, compile, export."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gatedrnn.engines.cpu import library, ops
from gatedrnn.engines.cpu.library import CELLS, GATES
from tests.engines.cpu.loop import Case, leaves, loop, native


@pytest.fixture(autouse=True)
def reference() -> None:
    """The plain loop stands in for the reference engine."""

    def scan(input, h_0, c_0, weights, lengths, batch_sizes, cell, gate, coefficients, beta, reverse):
        assert batch_sizes is None
        case = Case(cell, gate, reverse=reverse, coefficients=list(coefficients), beta=beta)
        tensors = {
            "input": input,
            "h_0": h_0,
            "c_0": c_0,
            "lengths": lengths,
            **dict.fromkeys(library.WEIGHTS),
            **weights,
        }
        return loop(case, tensors)

    before = ops._reference
    ops.use_reference(scan)
    yield
    ops._reference = before


def arguments(case: Case, t: dict[str, Tensor | None]) -> tuple:
    weights = [t[name] for name in library.WEIGHTS]
    options = (case.cell, case.gate, case.coefficients, case.beta, case.reverse, True, case.recompute, case.collect)
    return (t["input"], t["h_0"], t["c_0"], *weights, t["lengths"], None, *options)


CASES = [
    Case("lstm", "sigmoid", ragged=True, collect=True),
    Case("lstm", "fast", projection=2, reverse=True),
    Case("lstm_tied", "refine", recompute=True),
    Case("gru", "polynomial", coefficients=[1.0], ragged=True),
    Case("janet", "softsign", bias=False, recompute=True),
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
        output, h_n, c_n, cells, kept, threads = ops.scan(*arguments(case, t))
    given = [
        output.clone(),
        h_n.clone(),
        c_n.clone() if c_n.numel() else None,
        cells.clone() if cells.numel() else None,
    ]
    given = [g if g is None else g.requires_grad_() for g in given]
    tensors = arguments(case, t)[:14]
    options = (case.cell, case.gate, case.coefficients, case.beta, case.reverse, case.recompute, True)
    torch.library.opcheck(ops.scan_backward, (*given, *tensors, output, kept, threads, *options))


def differentiable(case: Case):
    t = leaves(case.tensors(), torch.float64)
    names = [n for n, v in t.items() if v is not None and n != "lengths"]

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        results = native(case, {**t, **dict(zip(names, values, strict=True))})
        return tuple(r for r in results if r.numel())

    return function, tuple(t[n] for n in names)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("cell", CELLS)
def test_gradcheck(cell: str, gate: str) -> None:
    case = Case(cell, gate, 3, 2, 2, 3, ragged=True, collect=cell.startswith("lstm"))
    case.coefficients = [0.5] if gate == "polynomial" else []
    torch.autograd.gradcheck(*differentiable(case))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.cell}-{c.gate}")
def test_gradgradcheck(case: Case) -> None:
    case.steps, case.inputs, case.hidden = 2, 1, 2
    torch.autograd.gradgradcheck(*differentiable(case))


def test_second_derivative_without_a_reference_says_so() -> None:
    ops._reference = None
    function, values = differentiable(Case())
    first = torch.autograd.grad(function(*values)[0].sum(), values, create_graph=True)
    with pytest.raises(RuntimeError, match="reference engine"):
        first[0].sum().backward()


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
        native(Case(), t, keep=False)
    with torch.no_grad():
        torch.testing.assert_close(native(Case(), t, keep=False)[0], native(Case(), t)[0], rtol=0, atol=0)


@pytest.mark.parametrize("recompute", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cell", CELLS)
def test_compile_with_dynamic_steps(cell: str, recompute: bool) -> None:
    case = Case(cell, "fast", recompute=recompute)
    t = leaves(case.tensors(), torch.float64)
    weights = {n: v for n, v in t.items() if n.startswith(("weight", "bias")) and v is not None}

    def function(x: Tensor) -> Tensor:
        return native(case, {**t, "input": x})[0].sin()

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
        weights = [getattr(self, name, None) for name in library.WEIGHTS]
        zero = x.new_zeros(x.shape[1], self.case.hidden)
        return ops.scan(x, zero, zero, *weights, None, None, "lstm", "fast", [], 0.0, False, False, False, False)[0]


def test_export_with_dynamic_steps() -> None:
    layer = Layer(Case()).requires_grad_(False)
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim("steps", min=2, max=1000)},))
    for steps in (4, 17):
        x = torch.randn(steps, 2, 3, dtype=torch.float64)
        torch.testing.assert_close(exported.module()(x), layer(x))
