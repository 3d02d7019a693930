"""16-bit layers and autocast: the memory is float32 inside the loop, and states come back as design says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gatedrnn.cells import CELLS
from tests.conformance.cases import (
    ALL_CASES,
    AUX_CASES,
    CELL_CASES,
    OWN_CASES,
    Case,
    as_argument,
    as_tuple,
    by_layer,
    on_engines,
    spread,
)
from tests.layers.tolerances import HALF, assert_close

I, H, T, B = 3, 4, 10, 2  # noqa: E741
HALVES = list(HALF)


def made(case: Case, dtype: torch.dtype, **keywords: Any) -> tuple[Any, Tensor]:
    layer = case.layer(I, H, dtype=dtype, **keywords)
    spread(layer)
    torch.manual_seed(0)
    return layer, torch.randn(T, B, I).to(dtype)


def wide_state(layer: Any) -> Any:
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    return as_argument(tuple(torch.randn(rows, B, size) for size in layer.cell.state_sizes(H)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("case", on_engines(ALL_CASES + OWN_CASES), ids=str)
def test_values_and_gradients_against_float32(case: Case, dtype: torch.dtype) -> None:
    layer, x = made(case, dtype)
    single = case.layer(I, H, dtype=torch.float32)
    single.load_state_dict(layer.state_dict())
    x.requires_grad_()
    wide = x.detach().float().requires_grad_()
    output, expected = layer(x)[0], single(wide)[0]
    assert output.dtype == dtype
    assert_close(output.float(), expected, HALF, dtype)
    (slope,), (expected_slope,) = (torch.autograd.grad(o.float().mean(), g) for o, g in ((output, x), (expected, wide)))
    assert slope.dtype == dtype
    assert_close(slope.float(), expected_slope, HALF, dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("case", on_engines(CELL_CASES), ids=str)
def test_dtype_of_the_states(case: Case, dtype: torch.dtype) -> None:
    """Of the input; float32 where a float32 state was given."""
    layer, x = made(case, dtype, num_layers=2)
    output, state, collected = layer(x, return_states="gates")
    assert {t.dtype for t in (output, *as_tuple(state), *collected.values())} == {dtype}
    given = wide_state(layer)
    output, state, collected = layer(x, given, return_states="gates")
    assert output.dtype == dtype
    assert {t.dtype for t in (*as_tuple(state), *collected.values())} == {torch.float32}
    narrow = as_argument(tuple(s.to(dtype) for s in as_tuple(given)))
    assert {s.dtype for s in as_tuple(layer(x, narrow)[1])} == {dtype}
    # What comes back in 16 bits is the float32 memory, rounded once.
    zeros = as_argument(tuple(torch.zeros_like(s) for s in as_tuple(given)))
    exact = as_tuple(layer(x, zeros)[1])
    rounded = as_tuple(layer(x)[1])
    assert all(torch.equal(e.to(dtype), r) for e, r in zip(exact, rounded, strict=True))
    assert any(not torch.equal(e, e.to(dtype).float()) for e in exact)

    step = case.step(I, H, dtype=dtype)
    assert {s.dtype for s in as_tuple(step(x[0]))} == {dtype}
    one = as_argument(tuple(s[0] for s in as_tuple(given)))
    assert {s.dtype for s in as_tuple(step(x[0], one))} == {torch.float32}


@pytest.mark.parametrize("mode", ["bfloat16", "float16", "autocast"])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_chunks_and_steps_equal_the_full_sequence_exactly(case: Case, mode: str) -> None:
    """When float32 states are passed on."""
    dtype = torch.float32 if mode == "autocast" else getattr(torch, mode)
    layer, x = made(case, dtype)
    step = case.step(I, H, dtype=dtype)
    step.load_state_dict(by_layer(layer)["l0"])
    start = wide_state(layer)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
        full, end = layer(x, start)
        outputs, state = [], start
        for part in x.split([3, 1, 6]):
            output, state = layer(part, state)
            outputs.append(output)
        single = as_argument(tuple(s[0] for s in as_tuple(start)))
        for x_t in x:
            single = step(x_t, single)
    assert torch.equal(torch.cat(outputs), full)
    for a, b, c in zip(as_tuple(state), as_tuple(end), as_tuple(single), strict=True):
        assert a.dtype == torch.float32
        assert torch.equal(a, b)
        assert torch.equal(c, b[0])


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_autocast(case: Case, recompute: bool) -> None:
    """Products in bfloat16 (the result is not float32's), all else and the states in float32. A native engine computes
    all in float32."""
    layer, x = made(case, torch.float32, recompute=recompute)
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        output, state = layer(x)
        from_half = layer(x.bfloat16())[0]
    assert output.dtype == torch.float32
    assert {s.dtype for s in as_tuple(state)} == {torch.float32}
    assert from_half.dtype == torch.bfloat16
    assert not torch.equal(output, expected[0])
    assert_close(output, expected[0], {torch.float32: HALF[torch.bfloat16]}, torch.float32)
    slopes = torch.autograd.grad(output.mean(), list(layer.parameters()))
    exact = torch.autograd.grad(expected[0].mean(), list(layer.parameters()))
    assert_close(slopes, exact, {torch.float32: HALF[torch.bfloat16]}, torch.float32)


@pytest.mark.parametrize("case", [case for case in on_engines(AUX_CASES) if case.engine != "reference"], ids=str)
def test_native_engines_compute_in_float32_under_autocast(case: Case) -> None:
    layer, x = made(case, torch.float32)
    expected = layer(x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x)[0]
    torch.testing.assert_close(output, expected, rtol=0, atol=0)


@pytest.mark.parametrize("case", on_engines(CELL_CASES), ids=str)
def test_the_default_device_does_not_matter(case: Case) -> None:
    layer, x = made(case, torch.float32)
    lengths = torch.tensor([T, 3])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    expected = layer(x, lengths=lengths)[0], layer(packed)[0].data
    with torch.device("meta"):
        found = layer(x, lengths=lengths)[0], layer(packed)[0].data
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("case", [case for case in CELL_CASES if case.takes_gate], ids=str)
def test_biases_are_added_in_float32(case: Case) -> None:
    """8 + 2⁻⁶ is no bfloat16: rounded there, it would be another time scale."""
    layer = case.layer(I, H, dtype=torch.bfloat16)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        (biases, *_) = layer.cell.forget_biases(by_layer(layer)["l0"])
        for bias, value in zip(biases, (8.0, 2.0**-6), strict=False):
            bias.fill_(value)
        z = sum(value for _, value in zip(biases, (8.0, 2.0**-6), strict=False))
        _, _, gates = layer(torch.zeros(1, B, I).bfloat16(), as_argument_of_zeros(layer), return_states="gates")
    expected = torch.full((H,), z, dtype=torch.float64).sigmoid().float()
    torch.testing.assert_close(gates["forget"][0, 0, 0], expected, rtol=1e-6, atol=0)


def as_argument_of_zeros(layer: Any) -> Any:
    return as_argument(tuple(torch.zeros_like(s) for s in as_tuple(wide_state(layer))))


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_was_here(name: str) -> None:
    assert any(case.cell == name for case in CELL_CASES)
