"""Values and gradients of the native scan against a plain float64 loop."""

from __future__ import annotations

import itertools

import pytest
import torch

import gatedrnn
from tests.engines.cpu.loop import CELLS, GATES, Case, worst

# float64: rounding of sums of up to a few thousand terms. float32: the same, relative to the largest entry.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
# The NRU: entries of a direction are raised to the fifth power at every step, and nothing bounds its memory.
TOLERANCE_OF_NRU = {torch.float64: 1e-9, torch.float32: 1e-3}
DTYPES = [torch.float64, torch.float32]


def check(case: Case) -> None:
    error, name = worst(case)
    tolerance = (TOLERANCE_OF_NRU if case.cell == "nru" else TOLERANCE)[case.dtype]
    assert error < tolerance, f"{name} is off by {error:.1e}: {case}"


def coefficients(gate: str) -> list[float]:
    return [1.0, 0.25] if gate == "polynomial" else []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_and_gate(cell: str, gate: str, dtype: torch.dtype, isa: str) -> None:
    shapes = itertools.cycle([(7, 19, 2), (2, 3, 40), (13, 33, 5)])
    for ragged, reverse, recompute in itertools.product((False, True), repeat=3):
        batch, hidden, inputs = next(shapes)
        case = Case(cell, gate, 11, batch, inputs, hidden, ragged=ragged, reverse=reverse, recompute=recompute)
        case.coefficients, case.dtype, case.collect = coefficients(gate), dtype, ragged
        check(case)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("hidden", [1, 3, 127, 130, 513])
def test_odd_sizes(cell: str, hidden: int, dtype: torch.dtype, isa: str) -> None:
    for batch in (1, 2, 7, 65) if hidden < 500 else (1, 7):
        for steps in (1, 2):
            check(Case(cell, "fast", steps, batch, 3, hidden, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("gate", ["polynomial", "refine", "program"])
@pytest.mark.parametrize("cell", CELLS)
def test_one_step(cell: str, gate: str, dtype: torch.dtype, isa: str) -> None:
    """The kernels for few rows, up to the number from which on others take over."""
    # Not a single input: its gradient can be what is left of terms 300 times as large, with their rounding.
    for batch, inputs, hidden in ((1, 6, 7), (4, 70, 33), (9, 0, 5), (64, 5, 70), (65, 5, 7)):
        case = Case(cell, gate, 1, batch, inputs, hidden, dtype=dtype, bias=batch != 4, collect=batch > 4)
        case.coefficients = coefficients(gate)
        check(case)


@pytest.mark.parametrize("cell", CELLS)
def test_one_step_with_threads(cell: str) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        check(Case(cell, "fast", 1, 6, 300, 517))  # work for several
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("recompute", [False, True])
def test_many_steps(cell: str, recompute: bool, dtype: torch.dtype, isa: str) -> None:
    # Fewer steps and small weights for the NRU, whose memory would leave all bounds.
    steps, scale = (300, 0.02) if cell == "nru" else (1000, 1.0)
    check(Case(cell, "fast", steps, 3, 2, 5, dtype=dtype, recompute=recompute, ragged=True, scale=scale))


@pytest.mark.parametrize("gate", ["sigmoid", "refine"])
@pytest.mark.parametrize("cell", ["lstm", "lstm_tied"])
def test_projection(cell: str, gate: str, isa: str) -> None:
    for hidden, projection in ((5, 3), (33, 17), (40, 16), (3, 1)):
        for ragged, recompute in itertools.product((False, True), repeat=2):
            case = Case(cell, gate, 9, 5, 2, hidden, projection, ragged=ragged, reverse=True, recompute=recompute)
            case.collect = True
            check(case)
            check(case.with_dtype(torch.float32))


@pytest.mark.parametrize("cell", CELLS)
def test_without_biases(cell: str, isa: str) -> None:
    check(Case(cell, "refine", 4, 3, 2, 5, bias=False))


@pytest.mark.parametrize("inputs", [0, 1, 4, 5, 16, 17, 32, 33, 100])
def test_input_sizes(inputs: int, isa: str) -> None:
    for cell in CELLS:
        check(Case(cell, "fast", 5, 9, inputs, 20))


@pytest.mark.parametrize("beta", [-3.0, 0.0, 5.0])
def test_beta(beta: float, isa: str) -> None:
    check(Case("janet", "fast", 5, 3, 2, 6, beta=beta))


def test_polynomials_of_any_degree(isa: str) -> None:
    for some in ([], [0.0], [0.0, 0.5], [1.0] * 6):
        check(Case("gru", "polynomial", 5, 3, 2, 6, coefficients=some, scale=0.5))


@pytest.mark.parametrize("batch", [129, 300])
def test_more_rows_than_a_slice(batch: int, isa: str) -> None:
    for ragged in (False, True):
        check(Case("lstm_tied", "fast", 5, batch, 2, 20, ragged=ragged))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("relu", [0, 1])
def test_memories_and_heads(relu: int, dtype: torch.dtype, isa: str) -> None:
    for memory_size, heads in ((1, 1), (2, 2), (9, 4), (18, 2), (64, 4), (3, 27)):
        for inputs, recompute in ((0, False), (3, True), (40, False)):
            case = Case("nru", steps=9, batch=5, inputs=inputs, hidden=20, memory=(memory_size, heads, relu))
            case.dtype, case.recompute, case.ragged, case.collect = dtype, recompute, recompute, True
            check(case)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("size", [1e-9, 1e3, 7e3, 1e5])
def test_directions_of_any_size(size: float, relu: bool, isa: str) -> None:
    """Rows of directions far below 1, and above the norm from which on they count as zero, as the reference has it."""
    layers = [
        gatedrnn.NRU(3, 7, memory_size=9, heads=4, relu=relu, dtype=torch.float64, engine=e)
        for e in ("cpu", "reference")
    ]
    layers[1].load_state_dict(layers[0].state_dict())
    x = torch.randn(6, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = []
    for layer in layers:
        with torch.no_grad():
            layer.W_va_l0 *= size
            layer.b_va_l0 *= size
        output, (h, m) = layer(x)
        (output.sum() + (m * torch.linspace(-1, 1, 9)).sum()).backward()
        found.append({"output": output, "h": h, "m": m, **{n: p.grad for n, p in layer.named_parameters()}})
    for name, value in found[0].items():
        torch.testing.assert_close(
            value, found[1][name], rtol=1e-8, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}"
        )
