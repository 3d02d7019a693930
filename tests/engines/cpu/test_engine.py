"""The CPU engine against the reference engine, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from gatedrnn import cells, gates
from gatedrnn.engines.cpu import calls
from gatedrnn.engines.cpu.engine import CPUEngine
from gatedrnn.engines.interface import Scan
from gatedrnn.engines.reference import ReferenceEngine

ENGINE, REFERENCE = CPUEngine(), ReferenceEngine()
CELLS = [
    cells.LSTMEquations(),
    cells.LSTMEquations(tied=True),
    cells.LSTMEquations(proj_size=2),
    cells.GRUEquations(),
    cells.JANETEquations(),
    cells.JANETEquations(beta=0.5),
    cells.UGRNNEquations(),
    cells.MinimalRNNEquations(),
    cells.FastGRNNEquations(),
]
GATES = [cls() for cls in gates.GATES.values()]


def make(
    cell: cells.Cell, gate: gates.Gate, dtype: torch.dtype = torch.float64, lengths: bool = True, **options
) -> Scan:
    g = torch.Generator().manual_seed(3)
    steps, batch, inputs, hidden = 6, 4, 3, 5
    shapes = cell.parameter_shapes(inputs, hidden, True, gate.preactivations == 2)
    return Scan(
        cell,
        gate,
        torch.randn(steps, batch, inputs, generator=g, dtype=torch.float64).to(dtype).requires_grad_(),
        tuple(
            torch.randn(batch, n, generator=g, dtype=torch.float64).to(dtype).requires_grad_()
            for n in cell.state_sizes(hidden)
        ),
        {n: torch.randn(s, generator=g, dtype=torch.float64).to(dtype).requires_grad_() for n, s in shapes.items()},
        torch.tensor([6, 2, 5, 1]) if lengths else None,
        **options,
    )


def everything(engine, scan: Scan) -> dict[str, Tensor]:
    result = engine.run(scan)
    values = {"output": result.output, **{f"state {i}": s for i, s in enumerate(result.state)}, **result.collected}
    loss = sum(
        (v.double() * torch.linspace(-1, 1, v.numel(), dtype=torch.float64).view(v.shape)).sum()
        for v in values.values()
    )
    tensors = {"input": scan.input, **{f"state_{i}": s for i, s in enumerate(scan.state)}, **scan.weights}
    gradients = torch.autograd.grad(loss, list(tensors.values()))
    return {**values, **{f"grad {n}": v for n, v in zip(tensors, gradients, strict=True)}}


@pytest.mark.parametrize("gate", GATES, ids=repr)
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_equals_the_reference(cell: cells.Cell, gate: gates.Gate) -> None:
    for reverse in (False, True):
        for lengths in (False, True):
            scan = make(cell, gate, lengths=lengths, reverse=reverse, collect="gates")
            assert ENGINE.refuses(scan) is None
            expected, found = everything(REFERENCE, scan), everything(ENGINE, scan)
            assert expected.keys() == found.keys()
            for name, value in expected.items():
                torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


def packed(scan: Scan) -> Scan:
    """The scan with its rows sorted, longest first, and packed."""
    lengths = torch.tensor([6, 5, 2, 1])
    active = torch.arange(len(scan.input))[:, None] < lengths
    data = scan.input.detach()[active].requires_grad_()
    return replace(scan, input=data, lengths=None, batch_sizes=active.sum(1))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_packed_rows_equal_padded_ones(cell: cells.Cell, reverse: bool) -> None:
    scan = make(cell, gates.Refine(), reverse=reverse, collect="gates")
    scan = replace(scan, lengths=torch.tensor([6, 5, 2, 1]))
    expected, given = REFERENCE.run(scan), packed(scan)
    active = torch.arange(6)[:, None] < scan.lengths
    for engine in (REFERENCE, ENGINE):
        found = engine.run(given)
        torch.testing.assert_close(found.output, expected.output[active], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(found.state, expected.state, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(found.collected, expected.collected, rtol=1e-10, atol=1e-10)
    reference, native = everything(REFERENCE, given), everything(ENGINE, given)
    torch.testing.assert_close(native, reference, rtol=1e-9, atol=1e-9)


def test_second_derivative_of_packed_rows() -> None:
    scan = packed(make(cells.LSTMEquations(), gates.Fast(), collect=True))
    leaves = {"input": scan.input, **scan.weights}

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        weights = dict(zip(leaves, values, strict=True))
        result = ENGINE.run(replace(scan, input=weights.pop("input"), weights=weights))
        return result.output, result.collected["c"]

    values = tuple(leaves.values())
    assert torch.autograd.gradcheck(function, values)
    assert torch.autograd.gradgradcheck(function, values)


def test_wrong_batch_sizes_are_refused() -> None:
    scan = packed(make(cells.LSTMEquations(), gates.Fast()))
    for sizes in ([4, 3, 2, 2, 2, 2], [3, 4, 2, 2, 2, 1], [4, 3, 3, 2, 2, 0], [5, 3, 2, 2, 1, 1]):
        with pytest.raises(RuntimeError, match="batch_sizes must never increase|size mismatch for h_0"):
            ENGINE.run(replace(scan, batch_sizes=torch.tensor(sizes)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_computed_in_float32(dtype: torch.dtype) -> None:
    scan = make(cells.LSTMEquations(), gates.Fast(), dtype)
    wide = replace(
        scan,
        input=scan.input.float(),
        state=tuple(s.float() for s in scan.state),
        weights={n: w.float() for n, w in scan.weights.items()},
    )
    found, expected = ENGINE.run(scan), ENGINE.run(wide)
    assert torch.equal(found.output, expected.output.to(dtype))
    assert all(torch.equal(a, b.to(dtype)) for a, b in zip(found.state, expected.state, strict=True))
    mixed = replace(scan, state=wide.state)
    assert all(s.dtype == torch.float32 for s in ENGINE.run(mixed).state)


def test_second_derivative_goes_through_the_reference() -> None:
    scan = make(cells.GRUEquations(), gates.Fast())
    names, values = list(scan.weights), list(scan.weights.values())

    def function(x: Tensor, *weights: Tensor) -> Tensor:
        return ENGINE.run(replace(scan, input=x, weights=dict(zip(names, weights, strict=True)))).output

    torch.autograd.gradgradcheck(function, (scan.input, *values))


@dataclass(frozen=True)
class Mine(gates.SigmoidOf):
    def alpha(self, z: Tensor) -> Tensor:
        return z

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)


class Other(Mine):
    def alpha(self, z: Tensor) -> Tensor:
        return torch.erf(z)


class Special(torch.Tensor):
    pass


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, in its forward mode
def test_refusals() -> None:
    scan = make(cells.LSTMEquations(), gates.Fast(), torch.float32)
    assert ENGINE.refuses(scan) is None
    assert ENGINE.refuses(replace(scan, gate=Mine())) is None
    assert "Other()" in (ENGINE.refuses(replace(scan, gate=Other())) or "")
    assert "Special" in (ENGINE.refuses(replace(scan, input=scan.input.detach().as_subclass(Special))) or "")
    assert "meta" in (ENGINE.refuses(replace(scan, input=scan.input.to("meta"))) or "")
    assert "int64" in (ENGINE.refuses(replace(scan, input=scan.input.long())) or "")
    assert "float64" in (ENGINE.refuses(replace(scan, input=scan.input.double())) or "")
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(scan.input, torch.ones_like(scan.input))
        assert "forward-mode" in (ENGINE.refuses(replace(scan, input=dual)) or "")
    seen = []
    torch.vmap(lambda x: seen.append(ENGINE.refuses(replace(scan, input=x))) or x)(scan.input[None])
    assert "vmap" in seen[0]
    for kind in cells.CELLS.values():  # a subclass may compute something else
        changed = type("Changed", (kind,), {})()
        assert "no kernel for the cell" in (ENGINE.refuses(replace(scan, cell=changed)) or "")


def test_description_names_kernel_instruction_set_and_threads() -> None:
    text = ENGINE.describe(make(cells.LSTMEquations(tied=True), gates.Fast()))
    assert "lstm_tied" in text and "fast" in text and "thread" in text


def test_nothing_is_kept_without_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = calls.room_for_results
    monkeypatch.setattr(calls, "room_for_results", lambda *a: sizes.append((r := original(*a)).kept) or r)
    scan = make(cells.LSTMEquations(), gates.Fast())
    with torch.no_grad():
        ENGINE.run(scan)
    ENGINE.run(scan)
    assert sizes[0] is None and sizes[1].numel() > 0
