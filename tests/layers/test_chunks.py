"""chunks: the values of the whole sequence, gradients that end at the chunk, ragged rows, 16-bit, wrong arguments."""

from __future__ import annotations

import weakref
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import gatedrnn
from gatedrnn.layers import LAYERS
from tests.conformance.cases import ALL_CASES, CELL_CASES, Case, as_argument, as_tuple, random_state, spread
from tests.layers.tolerances import REGROUPED, assert_close

T, B, I, H = 11, 4, 3, 5  # noqa: E741
LENGTHS = [11, 1, 4, 7]


def joined(layer: Any, input: Tensor, size: int, **options: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The outputs of all chunks one after the other, and the last state."""
    results = list(gatedrnn.chunks(layer, input, size, **options))
    along = 1 if input.dim() == 3 and layer.batch_first else 0
    return torch.cat([output for output, _ in results], along), as_tuple(results[-1][1])


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_chunks_have_the_values_of_the_whole_sequence(case: Case, engine: str) -> None:
    layer = case.layer(I, H, num_layers=2, engine=engine)
    spread(layer)
    x, start = torch.randn(T, B, I, dtype=torch.float64), random_state(layer, B)
    for lengths in (None, torch.tensor(LENGTHS)):
        for state in (None, as_argument(start)):
            output, final = layer(x, state, lengths=lengths)
            for size in (1, 4, T + 5):
                found = joined(layer, x, size, state=state, lengths=lengths)
                assert_close(found, (output, as_tuple(final)), REGROUPED, torch.float64)


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_batch_first_and_unbatched(case: Case) -> None:
    layer, turned = case.layer(I, H), case.layer(I, H, batch_first=True)
    spread(layer)
    turned.load_state_dict(layer.state_dict())
    x = torch.randn(T, B, I, dtype=torch.float64)
    output, final = joined(layer, x, 4, lengths=LENGTHS)
    assert_close(
        joined(turned, x.transpose(0, 1), 4, lengths=LENGTHS), (output.transpose(0, 1), final), REGROUPED, torch.float64
    )
    for one in (layer, turned):  # unbatched input has no batch to be first
        expected, state = layer(x[:, 0])
        assert_close(joined(one, x[:, 0], 4), (expected, as_tuple(state)), REGROUPED, torch.float64)


def test_the_state_keeps_the_form_that_the_layer_returns() -> None:
    for name, kind in LAYERS.items():
        options: dict[str, Any] = {"memory_size": 16} if name == "nru" else {}
        layer: Any = kind(I, H, **options)  # type: ignore[arg-type, call-arg]
        for _, state in gatedrnn.chunks(layer, torch.randn(T, B, I), 4, lengths=LENGTHS):
            assert isinstance(state, tuple) == (len(layer.cell.states) > 1)
            assert not any(s.requires_grad for s in as_tuple(state))


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_gradients_stay_within_a_chunk(case: Case, recompute: bool) -> None:
    """The gradients of a loss over all chunks are the sum of those of calls whose state was cut by hand."""
    layer = case.layer(I, H, recompute=recompute)
    spread(layer)
    x = torch.randn(T, B, I, dtype=torch.float64, requires_grad=True)
    start = tuple(s.requires_grad_() for s in random_state(layer, B))
    leaves = [x, *start, *layer.parameters()]

    output, _ = joined(layer, x, 4, state=as_argument(start))
    found = torch.autograd.grad((output**2).sum(), leaves)

    loss, state = torch.zeros((), dtype=torch.float64), as_argument(start)
    for part in x.split(4):
        output, state = layer(part, state)
        loss = loss + (output**2).sum()
        state = as_argument(tuple(s.detach() for s in as_tuple(state)))
    assert_close(found, torch.autograd.grad(loss, leaves), REGROUPED, torch.float64)
    whole = torch.autograd.grad((layer(x, as_argument(start))[0] ** 2).sum(), leaves)
    assert not torch.allclose(whole[0][:4], found[0][:4])  # the whole sequence has more


def test_backward_in_the_loop_and_at_its_end_give_the_same_gradients() -> None:
    layer = gatedrnn.LSTM(I, H, dtype=torch.float64, forget_gate="fast")
    x = torch.randn(T, B, I, dtype=torch.float64)
    for output, _ in gatedrnn.chunks(layer, x, 3, lengths=LENGTHS):
        (output**2).sum().backward()  # type: ignore[no-untyped-call]
    found = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    output, _ = joined(layer, x, 3, lengths=LENGTHS)
    assert_close(
        found, list(torch.autograd.grad((output**2).sum(), list(layer.parameters()))), REGROUPED, torch.float64
    )


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_what_lies_past_the_length_reaches_nothing(poison: float) -> None:
    layer = gatedrnn.LSTM(I, H, dtype=torch.float64)
    x = torch.randn(T, B, I, dtype=torch.float64)
    past = torch.arange(T)[:, None] >= torch.tensor(LENGTHS)
    results = []
    for given in (x, torch.where(past[..., None], poison, x)):
        output, state = joined(layer, given, 3, lengths=LENGTHS)
        results.append((output, state, torch.autograd.grad(output.sum(), list(layer.parameters()))))
    assert torch.equal(results[0][0], results[1][0])
    assert all(map(torch.equal, results[0][1], results[1][1]))
    assert all(map(torch.equal, results[0][2], results[1][2]))
    assert not results[1][0][past].any()


def test_chunks_after_the_longest_row_are_left_out() -> None:
    layer = gatedrnn.GRU(I, H)
    x = torch.randn(T, B, I)
    found = list(gatedrnn.chunks(layer, x, 3, lengths=[2, 4, 4, 1]))
    assert [len(output) for output, _ in found] == [3, 3]
    whole, final = layer(x, lengths=[2, 4, 4, 1])
    torch.testing.assert_close(torch.cat([output for output, _ in found]), whole[:6])
    torch.testing.assert_close(found[-1][1], final)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_memory_of_16_bit_input_is_not_rounded_between_chunks(dtype: torch.dtype) -> None:
    layer = gatedrnn.LSTM(1, 4, dtype=dtype, forget_gate="fast", forget_init=gatedrnn.inits.Constant(1 - 1e-5))
    x = torch.randn(400, 2, 1).to(dtype)
    wide = tuple(torch.zeros(1, 2, 4) for _ in range(2))
    output, final = layer(x, wide)
    found = joined(layer, x, 8)  # no chunk of one step: that has a kernel of its own, which sums in another order
    assert all(s.dtype == torch.float32 for s in found[1])
    assert torch.equal(found[0], output)
    assert all(map(torch.equal, found[1], final))


def test_under_autocast_the_state_is_float32() -> None:
    layer = gatedrnn.LSTM(I, H)
    x = torch.randn(T, B, I)
    with torch.autocast("cpu", torch.bfloat16):
        output, final = layer(x, tuple(torch.zeros(1, B, H) for _ in range(2)))
        found = joined(layer, x, 4)
    torch.testing.assert_close(found, (output, final))
    assert found[1][0].dtype == torch.float32


def test_under_autocast_float64_stays_float64() -> None:
    layer = gatedrnn.LSTM(I, H, dtype=torch.float64, forget_gate="fast")
    x = torch.randn(T, B, I, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        output, final = layer(x)
        found = joined(layer, x, 4)
    assert_close(found, (output, as_tuple(final)), REGROUPED, torch.float64)
    assert {found[0].dtype, *(s.dtype for s in found[1])} == {torch.float64}


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_the_graph_of_a_chunk_is_released_before_the_next_one_runs(lengths: list[int] | None) -> None:
    layer = gatedrnn.LSTM(I, H)
    outputs: list[weakref.ref[Tensor]] = []
    alive: list[int] = []
    layer.register_forward_pre_hook(lambda *_: alive.append(sum(output() is not None for output in outputs)))
    parts = gatedrnn.chunks(layer, torch.randn(T, B, I), 4, lengths=lengths)
    for _ in range(3):
        output, _state = next(parts)
        assert output.requires_grad
        outputs.append(weakref.ref(output))
        del output
    assert alive == [0, 0, 0]


def test_an_encoder_is_applied_to_each_chunk_or_losses_are_summed() -> None:
    encoder, layer = nn.Linear(2, I, dtype=torch.float64), gatedrnn.LSTM(I, H, dtype=torch.float64)
    x, parameters = torch.randn(T, B, 2, dtype=torch.float64), [*encoder.parameters(), *layer.parameters()]
    for output, _ in gatedrnn.chunks(layer, encoder(x), 4):
        if output.shape[0] == 4 and encoder.weight.grad is None:
            (output**2).sum().backward()  # type: ignore[no-untyped-call]
            continue
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            (output**2).sum().backward()  # type: ignore[no-untyped-call]
        break
    summed = sum((output**2).sum() for output, _ in gatedrnn.chunks(layer, encoder(x), 4))
    expected = torch.autograd.grad(summed, parameters)  # type: ignore[arg-type]
    for p in parameters:
        p.grad = None
    state = None
    for part in x.split(4):
        ((output, state),) = gatedrnn.chunks(layer, encoder(part), 4, state=state)
        (output**2).sum().backward()  # type: ignore[no-untyped-call]
    assert_close([p.grad for p in parameters], list(expected), REGROUPED, torch.float64)


@pytest.mark.parametrize("size", [numpy.int64(4), numpy.uint8(4), torch.tensor(4)])
def test_the_size_may_be_any_integer(size: Any) -> None:
    found = [len(output) for output, _ in gatedrnn.chunks(gatedrnn.GRU(I, H), torch.randn(T, B, I), size)]
    assert found == [4, 4, 3]


def test_a_size_beyond_the_sequence_gives_one_chunk() -> None:
    for size in (T, 2**40, 2**63 - 1):
        ((output, _),) = gatedrnn.chunks(gatedrnn.GRU(I, H), torch.randn(T, B, I), size, lengths=LENGTHS)
        assert len(output) == T


LAYER = gatedrnn.LSTM(I, H)
X = torch.randn(T, B, I)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ((nn.LSTM(I, H), X, 3), TypeError, "chunks takes a recurrent layer of gatedrnn, got LSTM"),
        ((gatedrnn.LSTM(I, H, bidirectional=True), X, 3), ValueError, "LSTM: a bidirectional layer"),
        ((LAYER, pack_padded_sequence(X, torch.tensor([T] * B)), 3), TypeError, "not a PackedSequence"),
        ((LAYER, [1.0], 3), TypeError, "Expected input to be a Tensor"),
        ((LAYER, X[None], 3), ValueError, "Expected input to be 2D or 3D"),
        ((LAYER, X, 0), ValueError, "size must be at least 1, got 0"),
        (
            (LAYER, X, 2**63),
            ValueError,
            r"size must be below 2\*\*63, got 9223372036854775808; the number of steps gives",
        ),
        ((LAYER, X, numpy.bool_(True)), TypeError, "size should be of type int, got: bool"),
        ((LAYER, X, torch.tensor(2.0)), TypeError, "size should be of type int, got: Tensor"),
        ((LAYER, X, 2.0), TypeError, "size should be of type int, got: float"),
        ((LAYER, X, True), TypeError, "size should be of type int, got: bool"),
        ((LAYER, X, 3, torch.zeros(1, B, H)), TypeError, "hx must be a tuple"),
        ((LAYER, X, 3, None, [0, 1, 2, 3]), ValueError, "lengths must lie between 1 and the number of steps 11"),
        ((LAYER, X, 3, None, [1, 2]), ValueError, "lengths must have one entry per row"),
        ((LAYER, X[:, 0], 3, None, [4]), ValueError, "lengths needs a batch"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        gatedrnn.chunks(*arguments)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_16_bit_state_is_not_rounded_between_chunks(dtype: torch.dtype) -> None:
    layer = gatedrnn.GRU(2, 4, dtype=dtype, forget_init=gatedrnn.inits.Constant(0.9999))
    x, state = torch.randn(96, 2, 2).to(dtype), torch.randn(1, 2, 4).to(dtype)
    output, final = layer(x, state.float())
    found = torch.cat([part for part, _ in gatedrnn.chunks(layer, x, 8, state=state)])
    *_, (_, last) = gatedrnn.chunks(layer, x, 8, state=state)
    assert torch.equal(found, output)
    assert last.dtype == torch.float32 and torch.equal(last, final)


def test_the_default_dtype_does_not_matter() -> None:
    layer, x = gatedrnn.GRU(2, 3, dtype=torch.bfloat16), torch.randn(6, 2, 2).to(torch.bfloat16)
    expected = joined(layer, x, 3)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = joined(layer, x, 3)
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_an_empty_batch_has_as_many_chunks_with_lengths() -> None:
    layer, x = gatedrnn.GRU(2, 3), torch.randn(5, 0, 2)
    assert len(list(gatedrnn.chunks(layer, x, 2, lengths=[]))) == len(list(gatedrnn.chunks(layer, x, 2))) == 3
