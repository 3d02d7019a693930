"""Bad input: the right type of error, and a message that names the value."""

from __future__ import annotations

import copy
import functools
import re
from typing import Any

import pytest
import torch
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import gatedrnn
from gatedrnn.layers import LAYERS, STEPS
from tests.conformance.cases import AUX_CASES, CELL_CASES, Case, as_argument

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
        (3, TypeError, "must be a tensor or a sequence of integers, got 3"),
        ("543", TypeError, "must be a tensor or a sequence of integers, got '543'"),
        ([5, None, 3], TypeError, "lengths must be a tensor or a sequence of integers: "),
        (torch.ones(3, dtype=torch.int64, device="meta"), ValueError, "lengths must have values, got a tensor on the"),
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
    for wrong in (None, [1.0], x(B, I).numpy()):
        with pytest.raises(TypeError, match=f"Expected input to be a Tensor, got {type(wrong).__name__}$"):
            step(wrong)
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


def wrong_shapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Too small, too large, broadcastable, transposed where that differs, and with another number of dimensions."""
    last, front = shape[-1], shape[:-1]
    found = [(*front, last - 1), (*front, last + 1), (*front, 1), shape[::-1], (1, *shape), ()]
    return [s for s in found if s != shape]


@pytest.mark.parametrize("case", [*AUX_CASES, Case("lstm", "fast", (("proj_size", 2),))], ids=str)
def test_weights_that_do_not_fit(case: Case, each_engine: str) -> None:
    """Every weight, biases, projection and auxiliary ones too, assigned or by functional_call, with any engine."""
    proj = dict(case.options).get("proj_size", 0)
    layer = case.layer(I, H, 2, bidirectional=True, engine="auto")
    assert layer.state_dict(), "there are weights to try"
    expected = layer(x())[0]
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    for name, parameter in parameters.items():
        for shape in wrong_shapes(tuple(parameter.shape)):
            text = f"size mismatch for {name}: expected {tuple(parameter.shape)}, got {shape}"
            wrong = torch.zeros(shape, dtype=torch.float64)
            for given in (wrong, wrong.clone().requires_grad_()):
                with pytest.raises(RuntimeError, match=re.escape(text)):
                    functional_call(layer, {**parameters, name: given}, (x(),))
            other = copy.deepcopy(layer)
            setattr(other, name, torch.nn.Parameter(wrong))
            with pytest.raises(RuntimeError, match=re.escape(text)), torch.no_grad():
                other(x())
    assert torch.equal(layer(x())[0], expected)
    if proj:
        return
    step = case.step(I, H)
    for name, parameter in step.named_parameters():
        given = {**{n: p.detach() for n, p in step.named_parameters()}, name: torch.zeros(*parameter.shape, 2)}
        with pytest.raises(RuntimeError, match=f"size mismatch for {name}: expected"):
            functional_call(step, given, (x(B, I),))


def test_a_weight_that_is_not_there() -> None:
    layer: Any = gatedrnn.GRU(I, H)
    layer.weight_hh_l0 = None
    with pytest.raises(RuntimeError, match=r"weight_hh_l0 must be a tensor of shape \(12, 4\), got None"):
        layer(torch.zeros(T, B, I))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (torch.tensor([3.0, 2.0]), "int64 tensor on the CPU, got 1-D torch.float32"),
        (torch.tensor([3, 2], dtype=torch.int32), "got 1-D torch.int32"),
        (torch.tensor([[3, 2]]), "got 2-D torch.int64"),
        (torch.tensor(5), "got 0-D"),
        (torch.tensor([], dtype=torch.int64), "an entry for each time step, got none"),
        (torch.tensor([2, 3]), r"never increase, be at least 1 and sum to 5, .* got tensor\(\[2, 3\]\)"),
        (torch.tensor([3, 1, 1, 1, -1]), "never increase, be at least 1"),
        (torch.tensor([5, 0]), "never increase, be at least 1"),
        (torch.tensor([3, 1]), "sum to 5"),
        (torch.tensor([3, 3]), "sum to 5"),
        (torch.tensor([2**62, 2**62, 2**62, 2**62 - 1, 6]), "sum to 5"),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_batch_sizes_that_do_not_fit(case: Case, sizes: torch.Tensor, message: str, each_engine: str) -> None:
    layer = case.layer(I, H, bidirectional=True, engine="auto")
    for call in (layer, functools.partial(gatedrnn.explain, layer)):
        with pytest.raises(RuntimeError, match=message):
            call(PackedSequence(x(5, I), sizes))


def test_orders_that_do_not_fit(each_engine: str) -> None:
    layer: Any = gatedrnn.GRU(I, H, dtype=torch.float64)
    sizes, order = torch.tensor([3, 2]), torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match=r"sorted_indices must have an entry for each of 3 rows, got \(2,\)"):
        layer(PackedSequence(x(5, I), sizes, order))
    with pytest.raises(RuntimeError, match=r"unsorted_indices must have an entry for each of 3 rows, got \(2,\)"):
        layer(PackedSequence(x(5, I), sizes, None, order))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_tensors_that_are_not_dense(each_engine: str) -> None:
    layer: Any = gatedrnn.LSTM(I, H)
    cell: Any = gatedrnn.LSTMCell(I, H)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    dense = torch.rand(T, B, I)
    h = torch.rand(1, B, H)
    for call, message in (
        (lambda: layer(dense.to_sparse()), "LSTM: input must be dense, got the layout torch.sparse_coo"),
        (lambda: layer(dense.to_mkldnn()), "input must be dense, got the layout torch._mkldnn"),
        (lambda: layer(dense[0].to_sparse_csr()), "input must be dense, got the layout torch.sparse_csr"),
        (lambda: layer(torch.nested.nested_tensor([dense[0], dense[1]])), "input must not be a nested tensor"),
        (lambda: layer(torch.nested.as_nested_tensor(dense, layout=torch.jagged)), "must not be a nested tensor"),
        (lambda: layer(dense, (h, h.to_sparse())), "c_0 must be dense"),
        (lambda: layer(dense, (h.to_mkldnn(), h)), "h_0 must be dense"),
        (lambda: layer(PackedSequence(dense[0].to_sparse(), torch.tensor([2, 1]))), "input must be dense"),
        (
            lambda: functional_call(
                layer, {**parameters, "weight_hh_l0": parameters["weight_hh_l0"].to_sparse()}, (dense,)
            ),
            "weight_hh_l0 must be dense",
        ),
        (lambda: cell(dense[0].to_sparse()), "LSTMCell: input must be dense"),
    ):
        with pytest.raises(RuntimeError, match=message), torch.no_grad():
            call()


def test_numbers_that_are_not_real() -> None:
    """Autocast changes floating dtypes only; the imaginary part must not be lost on the way."""
    layer: Any = gatedrnn.LSTM(I, H)
    cell: Any = gatedrnn.LSTMCell(I, H)
    for dtype in (torch.complex64, torch.int64):
        given = torch.ones(T, B, I).to(dtype)
        for enabled in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                with pytest.raises(ValueError, match=f"RNN input dtype .{dtype}. does not match"):
                    layer(given)
                with pytest.raises(RuntimeError, match=f"same dtype, but got {dtype}"):
                    cell(given[0])


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_every_weight_is_on_the_same_device(case: Case) -> None:
    """A product with a weight on the meta device would give memory without values. Also after a call that was fine."""
    for module, given in ((case.layer(I, H, num_layers=2), x()), (case.step(I, H), x(B, I))):
        for called in (False, True):
            for name, weight in list(module.named_parameters()):
                if called:
                    module(given)
                missing = torch.nn.Parameter(weight.detach().to("meta"))
                with pytest.raises(RuntimeError, match=r"not at the same device|must be at the same device"):
                    functional_call(module, {name: missing}, (given,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_every_weight_has_the_same_dtype(case: Case, dtype: torch.dtype) -> None:
    """Else one engine would round the state to that dtype, and the other one would not. Also after a call that was fine."""
    for module, given in ((case.layer(I, H, num_layers=2), x()), (case.step(I, H), x(B, I))):
        for called in (False, True):
            for name, weight in list(module.named_parameters()):
                if called:
                    module(given)
                other = weight.detach().to(dtype)
                with pytest.raises((RuntimeError, ValueError), match=r"same dtype|floating dtype|does not match"):
                    functional_call(module, {name: other}, (given,))


def test_the_message_names_the_weight_of_another_dtype() -> None:
    layer: Any = gatedrnn.LSTM(2, 3, 2)
    layer.load_state_dict({**layer.state_dict(), "bias_hh_l1": torch.zeros(12, dtype=torch.float64)}, assign=True)
    message = (
        "LSTM: parameters do not have the same dtype, found weight_ih_l0 of torch.float32 and bias_hh_l1 of "
        r"torch.float64; convert all with model.to\(torch.float32\)"
    )
    for call in (layer, functools.partial(gatedrnn.explain, layer)):
        with pytest.raises(RuntimeError, match=message):
            call(torch.zeros(5, 1, 2))
    layer.bias_hh_l1 = torch.nn.Parameter(torch.zeros(12, dtype=torch.int32), requires_grad=False)
    with pytest.raises(RuntimeError, match="LSTM: bias_hh_l1 must have a floating dtype, got torch.int32"):
        layer(torch.zeros(5, 1, 2))


def test_under_autocast_weights_may_have_different_floating_dtypes() -> None:
    layer: Any = gatedrnn.LSTM(2, 3)
    given = torch.randn(5, 1, 2)
    with torch.autocast("cpu", torch.bfloat16):
        expected = layer(given)[0]
        layer.weight_hh_l0 = torch.nn.Parameter(layer.weight_hh_l0.bfloat16())
        torch.testing.assert_close(layer(given)[0], expected, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("option", [{"num_layers": 2}, {"bidirectional": True}])
@pytest.mark.parametrize("states", [False, True])
def test_float16_under_autocast_to_bfloat16(option: dict[str, Any], states: bool) -> None:
    layer, given = gatedrnn.LSTM(2, 3, **option), torch.randn(5, 1, 2)
    with torch.autocast("cpu", torch.bfloat16):
        expected = layer(given, return_states=states)[0]
        for _ in range(2):
            found = layer(given.half(), return_states=states)[0]
            assert found.dtype == torch.float16
            torch.testing.assert_close(found.float(), expected, rtol=2e-2, atol=2e-3)


def test_the_types_in_a_wrong_state_are_named() -> None:
    with pytest.raises(TypeError, match=r"hx must be a tuple \(h_0, c_0\) of tensors, got \(Tensor, NoneType\)"):
        gatedrnn.LSTM(2, 3)(torch.zeros(5, 1, 2), (torch.zeros(1, 1, 3), None))


@pytest.mark.parametrize("p", [-0.5, 2.0])
def test_an_assigned_weight_dropout_is_checked(p: float) -> None:
    layer: Any = gatedrnn.GRU(2, 3)
    layer.weight_dropout = p
    with pytest.raises(ValueError, match=r"weight_dropout should be a number in range \[0, 1\]"):
        layer(torch.zeros(5, 1, 2))


@pytest.mark.parametrize("kind", [gatedrnn.NRU, gatedrnn.NRUCell])
def test_relu_of_the_nru_is_a_bool(kind: Any) -> None:
    with pytest.raises(TypeError, match="relu should be of type bool, got: str"):
        kind(2, 3, relu="no")


def test_the_message_names_the_weight_on_another_device() -> None:
    layer: Any = gatedrnn.LSTM(2, 3, 2, bias=False)
    layer.weight_hh_l1 = torch.nn.Parameter(layer.weight_hh_l1.detach().to("meta"))
    message = "LSTM: parameters are not at the same device, found weight_ih_l0 at cpu and weight_hh_l1 at meta"
    with pytest.raises(RuntimeError, match=message):
        layer(torch.zeros(5, 1, 2))


@pytest.mark.usefixtures("each_engine")
def test_lengths_may_be_changed_after_the_call() -> None:
    layer, lengths = gatedrnn.GRU(2, 3), torch.tensor([2, 1])
    output, _ = layer(torch.randn(2, 2, 2), lengths=lengths)
    lengths -= 1
    output.sum().backward()
    assert layer.weight_hh_l0.grad is not None


@pytest.mark.parametrize("option", ["tied", "recompute", "bias", "batch_first"])
def test_switches_are_bool(option: str) -> None:
    with pytest.raises(TypeError, match=rf"^{option} should be of type bool, got: str$"):
        gatedrnn.LSTM(I, H, **{option: "no"})  # type: ignore[arg-type]
    if option == "tied":
        with pytest.raises(TypeError, match=r"^tied should be of type bool, got: str$"):
            gatedrnn.LSTMCell(I, H, tied="no")  # type: ignore[arg-type]


def test_convert_takes_a_module() -> None:
    with pytest.raises(TypeError, match=r"^convert takes a torch\.nn\.Module, got str$"):
        gatedrnn.convert("x", "fast")  # type: ignore[type-var]


@pytest.mark.parametrize("before", [False, True])
def test_wrong_arguments_are_errors_also_after_calls_of_the_same_kind(before: bool) -> None:
    layer, cell, x = gatedrnn.LSTM(4, 5), gatedrnn.LSTMCell(4, 5), torch.randn(2, 3, 4)
    if before:
        for _ in range(3):
            layer(x), cell(x[0])
    for empty in ((), []):
        with pytest.raises(RuntimeError, match=r"hx must be a tuple \(h_0, c_0\), got 0 tensor\(s\)"):
            layer(x, empty)
        with pytest.raises(RuntimeError, match=r"hx must be a tuple \(h_0, c_0\), got 0 tensor\(s\)"):
            cell(x[0], empty)
    with pytest.raises(ValueError, match="return_states"):
        layer(x, return_states=None)


def test_another_default_device_does_not_matter() -> None:
    layer, x = gatedrnn.GRU(2, 3, weight_dropout=0.5), torch.randn(5, 2, 2)
    torch.manual_seed(0)
    expected = layer(x, lengths=[3, 5])
    torch.manual_seed(0)
    with torch.device("meta"):
        found = layer(x, lengths=[3, 5])
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_lengths_of_mapped_batches() -> None:
    layer, x = gatedrnn.GRU(2, 3), torch.randn(4, 5, 2, 2)
    lengths = torch.tensor([[1, 5], [2, 4], [5, 5], [3, 1]])
    found = torch.vmap(lambda x, lengths: layer(x, lengths=lengths)[0])(x, lengths)
    expected = torch.stack([layer(part, lengths=own)[0] for part, own in zip(x, lengths, strict=True)])
    torch.testing.assert_close(found, expected)
