"""Bad input: the right type of error, and a message that names the value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import gatedrnn
from gatedrnn.layers import LAYERS, STEPS
from tests.cells.cases import CELL_CASES, Case, as_argument

I, H, T, B = 3, 4, 5, 3  # noqa: E741


def x(*shape: int) -> torch.Tensor:
    return torch.zeros(*(shape or (T, B, I)), dtype=torch.float64)


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ([5, 0, 3], ValueError, "between 1 and the number of steps 5, got 0 at index 1"),
        ([-2, 5, 3], ValueError, "got -2 at index 0"),
        ([5, 4, 6], ValueError, "got 6 at index 2"),
        (torch.tensor([5, 4, 600]), ValueError, "got 600 at index 2"),
        ([5, 4], ValueError, r"\(3,\), got \(2,\)"),
        ([[5, 4, 3]], ValueError, r"got \(1, 3\)"),
        (torch.tensor(5), ValueError, r"got \(\)"),
        ([5.0, 4.0, 3.0], TypeError, "must be integers, got torch.float32"),
        (torch.tensor([True, True, True]), TypeError, "must be integers, got torch.bool"),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_lengths(case: Case, lengths: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        case.layer(I, H)(x(), lengths=lengths)
    with pytest.raises(error, match=message):
        case.layer(I, H, batch_first=True)(x(B, T, I), lengths=lengths)


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_lengths_where_they_have_no_meaning(case: Case) -> None:
    layer = case.layer(I, H)
    packed = pack_padded_sequence(x(), torch.tensor([5, 4, 1]))
    with pytest.raises(ValueError, match="PackedSequence"):
        layer(packed, lengths=[5, 4, 1])
    with pytest.raises(ValueError, match="unbatched"):
        layer(x(T, I), lengths=[5])


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_input_that_does_not_fit(case: Case) -> None:
    layer = case.layer(I, H)
    with pytest.raises(RuntimeError, match="Expected 3, got 7"):
        layer(x(T, B, 7))
    with pytest.raises(RuntimeError, match="sequence length"):
        layer(x(0, B, I))
    with pytest.raises(ValueError, match="got 4D"):
        layer(x(1, T, B, I))
    with pytest.raises(ValueError, match=r"torch\.float32.*torch\.float64"):
        layer(x().float())
    with pytest.raises(TypeError, match="got list"):
        layer([1.0])
    with pytest.raises(RuntimeError, match="meta"):
        layer(x().to("meta"))
    with pytest.raises(ValueError, match="'everything'"):
        layer(x(), return_states="everything")
    step = case.step(I, H)
    with pytest.raises(RuntimeError, match="got 7 expected 3"):
        step(x(B, 7))
    with pytest.raises(ValueError, match="got 3D"):
        step(x())
    with pytest.raises(RuntimeError, match=r"torch\.float32.*torch\.float64"):
        step(x(B, I).float())
    with pytest.raises(RuntimeError, match="meta"):
        step(x(B, I).to("meta"))


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_states_that_do_not_fit(case: Case) -> None:
    layer, step = case.layer(I, H), case.step(I, H)
    sizes = layer.cell.state_sizes(H)

    def state(*front: int, extra: int = 0, dtype: torch.dtype = torch.float64) -> Any:
        return as_argument(tuple(torch.zeros(*front, size + extra, dtype=dtype) for size in sizes))

    layer(x(), state(1, B))
    for bad in (state(2, B), state(1, B + 1), state(1, B, extra=1)):
        with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 3, \d+\) for h_0, got \["):
            layer(x(), bad)
    with pytest.raises(RuntimeError, match="3-D but got 2-D"):
        layer(x(), state(B))
    with pytest.raises(RuntimeError, match="2-D but got 3-D"):
        layer(x(T, I), state(1, 1))
    with pytest.raises(RuntimeError, match=r"torch\.float64 and torch\.float32"):
        layer(x(), state(1, B, dtype=torch.float32))
    with pytest.raises(RuntimeError, match=r"torch\.float64 and torch\.float16"):
        layer(x(), state(1, B, dtype=torch.float16))
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        step(x(B, I), state(B + 1))
    with pytest.raises(RuntimeError, match=r"torch\.float64 and torch\.float32"):
        step(x(B, I), state(B, dtype=torch.float32))

    one = torch.zeros(1, B, H, dtype=torch.float64)
    if len(sizes) == 1:
        for module in (layer, step):
            with pytest.raises(TypeError, match=r"one tensor h_0, got tuple"):
                module(x() if module is layer else x(B, I), (one, one))
    else:
        names = ", ".join(f"{name}_0" for name in case.states)
        with pytest.raises(TypeError, match=rf"tuple \({names}\) of tensors, got Tensor"):
            layer(x(), one)
        with pytest.raises(RuntimeError, match=r"got 3 tensor"):
            layer(x(), (one, one, one))
        with pytest.raises(RuntimeError, match=r"got 1 tensor"):
            layer(x(), (one,))
        with pytest.raises(TypeError, match="of tensors"):
            layer(x(), (one, None))
        wrong = tuple(torch.zeros(1, B, size + k, dtype=torch.float64) for k, size in enumerate(sizes))
        with pytest.raises(RuntimeError, match=f"for {case.states[1]}_0"):
            layer(x(), wrong)


@pytest.mark.parametrize("name", LAYERS)
def test_arguments_without_meaning_are_refused(name: str) -> None:
    kind: Any = LAYERS[name]
    if name != "lstm":
        with pytest.raises(ValueError, match=f"proj_size.*not {kind.__name__}"):
            kind(I, H, proj_size=2)
        with pytest.raises(ValueError, match="proj_size"):
            kind(I, H, proj_size=0)
        with pytest.raises(TypeError, match="tied"):
            kind(I, H, tied=True)
    if name == "nru":
        for argument in ("forget_gate", "forget_init"):
            with pytest.raises(TypeError, match=argument):
                kind(I, H, **{argument: "fast"})
            with pytest.raises(TypeError, match=argument):
                STEPS[name](I, H, **{argument: "fast"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="heads" if name != "nru" else "beta"):
        kind(I, H, **{"heads" if name != "nru" else "beta": 2})
    with pytest.raises(ValueError, match="unknown engine 'warp'"):
        kind(I, H, engine="warp")
    with pytest.raises(TypeError, match="got: float"):
        kind(I, 2.5)
    with pytest.raises(ValueError, match="hidden_size must be greater than zero"):
        STEPS[name](I, 0)  # type: ignore[call-arg,arg-type]


@pytest.mark.parametrize(
    ("memory_size", "heads", "message"),
    [(64, 3, "64·3 = 192"), (5, 4, "5·4 = 20"), (0, 4, "memory_size=0"), (4, -1, "heads=-1")],
)
def test_nru_needs_a_square(memory_size: int, heads: int, message: str) -> None:
    for kind in (gatedrnn.NRU, gatedrnn.NRUCell):
        with pytest.raises(ValueError, match=message):
            kind(I, H, memory_size=memory_size, heads=heads)


def test_errors_leave_the_layer_usable() -> None:
    layer: Any = gatedrnn.LSTM(I, H)
    with pytest.raises(RuntimeError, match="got 7"):
        layer(torch.zeros(T, B, 7))
    assert layer(torch.zeros(T, B, I))[0].shape == (T, B, H)


def test_an_empty_batch_takes_an_empty_list_of_lengths() -> None:
    output, _ = gatedrnn.GRU(2, 3)(torch.zeros(4, 0, 2), lengths=[])
    assert output.shape == (4, 0, 3)
