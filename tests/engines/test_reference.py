"""The reference engine: the loop over time, lengths, directions, recomputing, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from gatedrnn.cells import Cell
from gatedrnn.engines import ENGINES, Scan, ScanResult
from gatedrnn.gates import resolve
from tests.cells.equations import run_row
from tests.conformance.cases import ALL_CASES, AUX_CASES, CELL_CASES, Case, as_argument, as_tuple, by_layer, spread
from tests.conformance.cases import random_state as state_of
from tests.layers.tolerances import EQUATIONS as CLOSE
from tests.layers.tolerances import REGROUPED, assert_close

I, H, T, B = 3, 4, 7, 3  # noqa: E741
REFERENCE = ENGINES["reference"]


def scan_of(case: Case, **keywords: Any) -> Scan:
    layer = case.layer(I, H)
    spread(layer)
    torch.manual_seed(0)
    x = torch.randn(T, B, I, dtype=torch.float64)
    state = tuple(s[0] for s in state_of(layer, B))
    weights = {name: w.detach().requires_grad_() for name, w in by_layer(layer)["l0"].items()}
    return Scan(layer.cell, layer.forget_gate, x, state, weights, **keywords)


def test_the_registry_names_the_reference_engine() -> None:
    assert REFERENCE.name == "reference"
    assert all(engine.name == name for name, engine in ENGINES.items())


@pytest.mark.parametrize("lengths", [None, [7, 2, 4]], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_scan(case: Case, reverse: bool, lengths: list[int] | None) -> None:
    """Against the equations, row by row: output, state at the length, all states and gates, zero past the length."""
    given = None if lengths is None else torch.tensor(lengths)
    scan = scan_of(case, reverse=reverse, lengths=given, collect="gates")
    output, state, collected = REFERENCE.run(scan)
    equation = case.equation()
    for b, n in enumerate(lengths or [T] * B):
        x = scan.input[:n, b].flip(0) if reverse else scan.input[:n, b]
        states, gates = run_row(lambda *a: equation(scan.weights, *a), x, tuple(s[b] for s in scan.state))
        assert_close(tuple(s[b] for s in state), states[-1], CLOSE, torch.float64)
        expected = {name: torch.stack([s[k] for s in states]) for k, name in enumerate(case.states)}
        expected |= {name: torch.stack([g[name] for g in gates]) for name in gates[0]}
        assert set(collected) == set(expected)
        for name, sequence in expected.items():
            sequence = sequence.flip(0) if reverse else sequence
            assert_close(collected[name][:n, b], sequence, CLOSE, torch.float64)
            assert (collected[name][n:, b] == 0).all()
        assert torch.equal(output[:, b], collected["h"][:, b])


@pytest.mark.parametrize("collect", [False, True, "gates"])
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_collects_what_is_asked_for(case: Case, collect: Any) -> None:
    collected = REFERENCE.run(scan_of(case, collect=collect)).collected
    cell: Cell = scan_of(case).cell
    gates = set(cell.gates(resolve("sigmoid"), _preactivations(case))) if collect == "gates" else set()
    assert set(collected) == (set(case.states) if collect else set()) | gates
    assert gates <= {"forget", "input", "output"}
    assert "forget" in collected or collect != "gates" or not case.takes_gate


def _preactivations(case: Case) -> Any:
    scan = scan_of(case)
    w = scan.cell.prepare(scan.weights)
    x_0 = tuple(part[0] for part in scan.cell.project(w, scan.input))
    return scan.cell.preactivations(w, x_0, scan.state)


def gradients(result: ScanResult, leaves: list[Tensor]) -> Any:
    tensors = [result.output, *result.state, *(result.collected[k] for k in sorted(result.collected))]
    generator = torch.Generator().manual_seed(5)
    loss: Any = sum((t * torch.randn(t.shape, generator=generator, dtype=t.dtype)).sum() for t in tensors)
    return torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_recompute_gives_equal_values_and_gradients(case: Case, lengths: bool, steps: int) -> None:
    torch.manual_seed(1)
    x = torch.randn(steps, B, I, dtype=torch.float64, requires_grad=True)
    ends = torch.tensor([steps, 1, (steps + 1) // 2]) if lengths else None
    for reverse in (False, True):
        base = scan_of(case)
        state = tuple(s.requires_grad_() for s in base.state)
        results = []
        for recompute in (False, True):
            scan = Scan(base.cell, base.gate, x, state, base.weights, ends, reverse, recompute, "gates")
            result = REFERENCE.run(scan)
            results.append((result, gradients(result, [x, *state, *base.weights.values()])))
        assert_close(results[1], results[0], REGROUPED, torch.float64)


@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_full_sequence_is_chunks_is_single_steps(case: Case) -> None:
    """With carried state, values and gradients."""
    layer, step = case.layer(I, H), case.step(I, H)
    spread(layer)
    step.load_state_dict(by_layer(layer)["l0"])
    torch.manual_seed(0)
    x = torch.randn(T, B, I, dtype=torch.float64, requires_grad=True)
    start = tuple(s.requires_grad_() for s in state_of(layer, B))

    def full() -> tuple[Tensor, Any]:
        return layer(x, as_argument(start))  # type: ignore[no-any-return]

    def chunks() -> tuple[Tensor, Any]:
        outputs, state = [], as_argument(start)
        for part in x.split([1, 3, 2, 1]):
            output, state = layer(part, state)
            outputs.append(output)
        return torch.cat(outputs), state

    def single_steps() -> tuple[Tensor, Any]:
        outputs, state = [], as_argument(tuple(s[0] for s in start))
        for x_t in x:
            state = step(x_t, state)
            outputs.append(as_tuple(state)[0])
        return torch.stack(outputs), as_argument(tuple(s.unsqueeze(0) for s in as_tuple(state)))

    runs = []
    for way, module in ((full, layer), (chunks, layer), (single_steps, step)):
        output, state = way()
        weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        loss = (output * weights).sum() + sum((s**2).sum() for s in as_tuple(state))
        grads = torch.autograd.grad(loss, [x, *start, *module.parameters()])
        runs.append((output, state, grads))
    assert_close(runs[1], runs[0], REGROUPED, torch.float64)
    assert_close(runs[2], runs[0], REGROUPED, torch.float64)


@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_lengths_equal_runs_of_single_rows(case: Case) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=True)
    spread(layer)
    torch.manual_seed(0)
    x = torch.randn(T, B, I, dtype=torch.float64)
    start = state_of(layer, B)
    lengths = [3, 7, 1]
    output, state = layer(x, as_argument(start), lengths=lengths)
    for b, n in enumerate(lengths):
        row = slice(b, b + 1)
        alone, end = layer(x[:n, row], as_argument(tuple(s[:, row] for s in start)))
        assert_close(output[:n, row], alone, REGROUPED, torch.float64)
        assert (output[n:, row] == 0).all()
        assert_close(tuple(s[:, row] for s in as_tuple(state)), as_tuple(end), REGROUPED, torch.float64)


# --- what it costs ---------------------------------------------------------------------------------------------------


class _Work(TorchDispatchMode):
    """Counts operations and the elements they put out."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.elements += tensor.numel()
        return result


@pytest.mark.parametrize(("recompute", "lengths"), [(False, False), (True, True)])
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_cost_is_linear_in_the_number_of_steps(case: Case, recompute: bool, lengths: bool) -> None:
    """Operations and elements written, forward and backward. Indexing x[t] inside the loop would make the backward
    pass fill T tensors of T steps: elements would grow fourfold."""
    layer = case.layer(I, H, recompute=recompute)

    def work(steps: int) -> tuple[int, int]:
        x = torch.randn(steps, B, I, dtype=torch.float64, requires_grad=True)
        with _Work() as counter:
            output, _ = layer(x, lengths=[steps, 1, steps // 2] if lengths else None)
            output.sum().backward()
        return counter.operations, counter.elements

    first, second, third = work(9), work(25), work(57)  # 16 and 32 apart
    for a, b, c in zip(first, second, third, strict=True):
        # A constant and a linear part (and with recompute a √T part): the second difference shows any other.
        assert abs((c - b) / (b - a) - 2.0) < 0.05


def live_bytes(layer: Any, steps: int) -> int:
    """What the forward pass leaves allocated for the backward pass, output and states included."""
    x = torch.randn(steps, 1, layer.input_size, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as measured:
        result = layer(x)
    kept: int = sum(event.self_cpu_memory_usage for event in measured.events())
    del result
    return kept


@pytest.mark.parametrize("case", CELL_CASES[:3], ids=str)
def test_recompute_keeps_a_root_of_the_steps(case: Case) -> None:
    """Beside the output, what stays alive between forward and backward grows with √T."""
    plain, thrifty = (case.layer(1, 64, dtype=torch.float32, recompute=recompute) for recompute in (False, True))
    output = 4 * 64  # bytes of one step
    few, many = (live_bytes(thrifty, steps) - steps * output for steps in (36, 144))
    assert live_bytes(plain, 144) - 144 * output > 5 * (144 * output)
    # √(144/36) = 2 times as many states; 12 states of each entry, and what does not depend on T.
    assert many <= 2.2 * few
    assert many <= 12 * output * (len(case.states) + 2)


def peak_bytes(layer: Any, steps: int) -> int:
    """The most that forward and backward pass have allocated at one time."""
    x = torch.randn(steps, 1, layer.input_size, requires_grad=True)
    layer.zero_grad()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as measured:
        layer(x)[0].sum().backward()
    assert measured.profiler is not None
    events = [e for e in measured.profiler.kineto_results.events() if e.name() == "[memory]"]
    total = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        total += event.nbytes()
        peak = max(peak, total)
    return peak


@pytest.mark.parametrize("case", CELL_CASES[:1], ids=str)
def test_recompute_never_holds_all_steps(case: Case) -> None:
    """Also in the backward pass only one block is there at a time: the peak hardly grows where the plain one does."""
    plain, thrifty = (
        peak_bytes(layer, 144) - peak_bytes(layer, 36)
        for layer in (case.layer(1, 64, dtype=torch.float32, recompute=recompute) for recompute in (False, True))
    )
    assert 0 < thrifty < 0.25 * plain


# --- NaN stays where it is -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_nan_in_one_row_stays_in_that_row(case: Case, bidirectional: bool) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=bidirectional)
    spread(layer)
    torch.manual_seed(0)
    clean = torch.randn(T, B, I, dtype=torch.float64)
    x = clean.clone()
    x[2, 1, 0] = torch.nan
    x.requires_grad_()
    rows = [0, 2]
    for lengths in (None, [7, 5, 3]):
        output, state = layer(x, lengths=lengths)
        expected, expected_state = layer(clean, lengths=lengths)
        assert torch.isnan(output[2, 1]).any()
        assert torch.equal(output[:, rows], expected[:, rows])
        assert all(
            torch.equal(s[:, rows], e[:, rows]) for s, e in zip(as_tuple(state), as_tuple(expected_state), strict=True)
        )
        (slope,) = torch.autograd.grad(output.sum(), x)
        assert torch.isfinite(slope[:, rows]).all()
        if not bidirectional:  # before the NaN, its own row is untouched too
            assert torch.equal(output[:2], expected[:2])


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_padding_reaches_nothing(case: Case, recompute: bool, poison: float) -> None:
    """Neither values nor gradients, those of the weights included, see what lies past the length."""
    layer = case.layer(I, H, num_layers=2, bidirectional=True, recompute=recompute)
    spread(layer)
    torch.manual_seed(0)
    clean = torch.randn(T, B, I, dtype=torch.float64)
    lengths = [7, 5, 2]
    padding = torch.arange(T).unsqueeze(-1) >= torch.tensor(lengths)
    runs = []
    for fill in (0.0, poison):
        x = torch.where(padding.unsqueeze(-1), fill, clean).requires_grad_()
        output, state, collected = layer(x, lengths=lengths, return_states="gates")
        loss = sum((t**2).sum() for t in (output, *as_tuple(state), *collected.values()))
        runs.append((output, as_tuple(state), collected, torch.autograd.grad(loss, [x, *layer.parameters()])))
    assert torch.isfinite(runs[1][0]).all()
    torch.testing.assert_close(runs[1], runs[0], rtol=0, atol=0)
    assert (runs[1][3][0][padding] == 0).all()
