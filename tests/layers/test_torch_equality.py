"""The default layer is torch's layer: parameters, outputs, states, gradients, errors and warnings over all options."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import gatedrnn
from tests.conformance.cases import as_tuple
from tests.layers.tolerances import SIGMAS, TORCH, assert_close

# torch names its own kernel here; ours has no such kernel to name.
pytestmark = [
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
    pytest.mark.usefixtures("each_engine"),
]

I, H, P, T, B = 3, 4, 2, 4, 3  # noqa: E741
LENGTHS = {"packed": [4, 3, 1], "packed_unsorted": [1, 4, 3]}
PAIRS = {"LSTM": (gatedrnn.LSTM, nn.LSTM), "GRU": (gatedrnn.GRU, nn.GRU)}
STEP_PAIRS = {"LSTMCell": (gatedrnn.LSTMCell, nn.LSTMCell), "GRUCell": (gatedrnn.GRUCell, nn.GRUCell)}

Option = dict[str, Any]


def _grid() -> list[Any]:
    """Every combination of the constructor's options, each in training without and in eval with dropout."""
    grid: list[Any] = []
    for kind, layers, both, bias, batch_first, training in itertools.product(
        PAIRS, (1, 2), (False, True), (True, False), (False, True), (True, False)
    ):
        for proj_size in (0, P) if kind == "LSTM" else (None,):
            options: Option = {"num_layers": layers, "bidirectional": both, "bias": bias, "batch_first": batch_first}
            if proj_size is not None:
                options["proj_size"] = proj_size
            if not training:
                if layers == 1:
                    continue  # nothing to drop
                options["dropout"] = 0.5
            words = [kind, *(f"{name}={value}" for name, value in options.items()), "train" if training else "eval"]
            grid.append(pytest.param(kind, options, training, id="-".join(words)))
    return grid


def pair(kind: str, *arguments: Any, seed: int = 0, **options: Any) -> tuple[Any, Any]:
    made = []
    for cls in {**PAIRS, **STEP_PAIRS}[kind]:
        torch.manual_seed(seed)
        made.append(cls(*arguments, **options))
    return made[0], made[1]


def gradients(module: nn.Module, leaves: list[Tensor], result: Any) -> list[Tensor]:
    """Of a random linear function of everything the module gave."""
    output, state = result
    data = output.data if isinstance(output, PackedSequence) else output
    generator = torch.Generator().manual_seed(3)
    loss: Any = sum(
        (t * torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.dtype)).sum()
        for t in (data, *as_tuple(state))
    )
    return list(torch.autograd.grad(loss, [*leaves, *module.parameters()], retain_graph=True))


@pytest.mark.parametrize(("kind", "options", "training"), _grid())
def test_same_parameters_outputs_states_and_gradients(kind: str, options: Option, training: bool) -> None:
    dtypes = (torch.float64, torch.float32) if training else (torch.float64,)
    forms = ("batched", "unbatched", *LENGTHS) if training else ("batched", "packed_unsorted")
    for dtype, form, with_state in itertools.product(dtypes, forms, (False, True)):
        ours, theirs = pair(kind, I, H, dtype=dtype, **options)
        for (name, a), (other, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            assert name == other
            assert torch.equal(a, b)
        ours.train(training)
        theirs.train(training)

        torch.manual_seed(1)
        shape = (B, T, I) if options["batch_first"] else (T, B, I)
        x = torch.randn((T, I) if form == "unbatched" else shape, dtype=dtype, requires_grad=True)
        rows = options["num_layers"] * (2 if options["bidirectional"] else 1)
        sizes = (options["proj_size"] or H, H) if kind == "LSTM" else (H,)
        batch = () if form == "unbatched" else (B,)
        state = [torch.randn(rows, *batch, size, dtype=dtype, requires_grad=True) for size in sizes]
        leaves = [x, *state] if with_state else [x]
        hx = (tuple(state) if kind == "LSTM" else state[0]) if with_state else None
        given: Any = x
        if form in LENGTHS:
            sort = form == "packed"
            given = pack_padded_sequence(x, torch.tensor(LENGTHS[form]), options["batch_first"], enforce_sorted=sort)

        results = ours(given, hx), theirs(given, hx)
        for a, b in zip(*((r[0] if isinstance(r[0], PackedSequence) else (r[0],)) for r in results), strict=True):
            if b is None:
                assert a is None
            else:
                assert_close(a, b, TORCH, dtype)
        assert type(results[0][1]) is type(results[1][1])
        assert_close(results[0][1], results[1][1], TORCH, dtype)
        ours_grad, theirs_grad = gradients(ours, leaves, results[0]), gradients(theirs, leaves, results[1])
        assert_close(ours_grad, theirs_grad, TORCH, dtype)


@pytest.mark.parametrize("dtype", TORCH, ids=str)
@pytest.mark.parametrize("kind", PAIRS)
def test_a_hundred_steps(kind: str, dtype: torch.dtype) -> None:
    ours, theirs = pair(kind, 5, 16, num_layers=2, bidirectional=True, dtype=dtype)
    x = torch.randn(100, 4, 5, dtype=dtype, requires_grad=True)
    results = ours(x), theirs(x)
    assert_close(results[0], results[1], TORCH, dtype)
    assert_close(gradients(ours, [x], results[0]), gradients(theirs, [x], results[1]), TORCH, dtype)


@pytest.mark.parametrize("dtype", TORCH, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", STEP_PAIRS)
def test_cells(kind: str, bias: bool, dtype: torch.dtype) -> None:
    ours, theirs = pair(kind, I, H, bias, dtype=dtype)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert_close(list(ours.parameters()), list(theirs.parameters()), TORCH, dtype)
    for batch, with_state in itertools.product(((), (B,)), (False, True)):
        x = torch.randn(*batch, I, dtype=dtype, requires_grad=True)
        state = [torch.randn(*batch, H, dtype=dtype, requires_grad=True) for _ in range(2 if "LSTM" in kind else 1)]
        hx: Any = (tuple(state) if len(state) > 1 else state[0]) if with_state else None
        results = ours(x, hx), theirs(x, hx)
        assert type(results[0]) is type(results[1])
        assert_close(results[0], results[1], TORCH, dtype)
        leaves = [x, *state] if with_state else [x]
        both = [
            torch.autograd.grad(torch.cat(as_tuple(result), -1).pow(2).sum(), [*leaves, *module.parameters()])
            for module, result in zip((ours, theirs), results, strict=True)
        ]
        assert_close(both[0], both[1], TORCH, dtype)


@pytest.mark.parametrize("kind", [*PAIRS, *STEP_PAIRS])
def test_positional_arguments(kind: str) -> None:
    arguments: tuple[Any, ...] = (I, H, True, "cpu", torch.float64)
    if kind == "LSTM":
        arguments = (I, H, 2, False, True, 0.25, True, P, "cpu", torch.float64)
    elif kind == "GRU":
        arguments = (I, H, 2, False, True, 0.25, True)  # torch's GRU takes device by name only
    ours, theirs = pair(kind, *arguments)
    assert ours.extra_repr() == theirs.extra_repr()
    assert_close(ours.state_dict(), theirs.state_dict(), TORCH, torch.float64)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", PAIRS)
def test_state_dicts_load_in_both_directions(kind: str, both: bool) -> None:
    options: Option = {"num_layers": 2, "bidirectional": both, "proj_size": P} if kind == "LSTM" else {"num_layers": 2}
    ours, theirs = pair(kind, I, H, **options)
    x = torch.randn(T, B, I)
    for source, target in ((ours, theirs), (theirs, ours)):
        nn.init.normal_(next(iter(source.parameters())))
        assert not torch.equal(source(x)[0], target(x)[0])
        target.load_state_dict(source.state_dict(), strict=True)
        assert_close(target(x), source(x), TORCH, torch.float32)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", STEP_PAIRS)
def test_state_dicts_of_cells_load_in_both_directions(kind: str, bias: bool) -> None:
    ours, theirs = pair(kind, I, H, bias)
    x = torch.randn(B, I)
    for source, target in ((ours, theirs), (theirs, ours)):
        nn.init.normal_(source.weight_ih)
        target.load_state_dict(source.state_dict(), strict=True)
        assert_close(target(x), source(x), TORCH, torch.float32)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "dropout": 0.5, "bidirectional": True}, {"bias": False, "batch_first": True}],
    ids=str,
)
@pytest.mark.parametrize("kind", PAIRS)
def test_same_repr_and_all_weights(kind: str, options: Option) -> None:
    ours, theirs = pair(kind, I, H, **options)
    assert repr(ours) == repr(theirs)
    assert [[tuple(w.shape) for w in ws] for ws in ours.all_weights] == [
        [tuple(w.shape) for w in ws] for ws in theirs.all_weights
    ]
    flat = [list(itertools.chain.from_iterable(m.all_weights)) for m in (ours, theirs)]
    assert all(torch.equal(a, b) for a, b in zip(*flat, strict=True))
    ours.flatten_parameters()


def test_same_repr_with_projection() -> None:
    ours, theirs = pair("LSTM", I, H, proj_size=P, num_layers=2)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("kind", [*PAIRS, *STEP_PAIRS])
def test_meta_device(kind: str) -> None:
    """No values, torch's shapes, and no numbers drawn."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    ours, theirs = pair(kind, I, H, device="meta")
    assert torch.equal(torch.get_rng_state(), before)
    x = torch.empty(B, I, device="meta") if "Cell" in kind else torch.empty(T, B, I, device="meta")
    results = [as_tuple(m(x)) if "Cell" in kind else (m(x)[0], *as_tuple(m(x)[1])) for m in (ours, theirs)]
    for a, b in zip(*results, strict=True):
        assert a.is_meta
        assert a.shape == b.shape
        assert a.dtype == b.dtype
    ours.to_empty(device="cpu").reset_parameters()
    torch.manual_seed(0)
    ours.reset_parameters()
    fresh, _ = pair(kind, I, H)
    assert all(torch.equal(p, q) for p, q in zip(ours.parameters(), fresh.parameters(), strict=True))


@pytest.mark.parametrize("kind", PAIRS)
def test_empty_batch(kind: str) -> None:
    ours, theirs = pair(kind, I, H, bidirectional=True)
    x = torch.randn(T, 0, I)
    assert_close(ours(x), theirs(x), TORCH, torch.float32)
    output, _ = ours(x, lengths=torch.zeros(0, dtype=torch.int64))
    assert output.shape == (T, 0, 2 * H)


# --- errors and warnings ---------------------------------------------------------------------------------------------


def outcome(function: Any) -> tuple[type[BaseException] | None, list[tuple[type[Warning], str]]]:
    """The type of the error, if any, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function()
            error = None
        except Exception as e:
            error = type(e)
    return error, [(w.category, str(w.message)) for w in caught]


BAD_ARGUMENTS: list[tuple[tuple[Any, ...], Option]] = [
    ((0, H), {}),
    ((-1, H), {}),
    ((I, 0), {}),
    ((I, -2), {}),
    ((1.5, H), {}),
    ((I, 2.5), {}),
    (("3", H), {}),
    ((I, H), {"num_layers": 0}),
    ((I, H), {"num_layers": -1}),
    ((I, H), {"num_layers": 1.5}),
    ((I, H), {"bias": 1}),
    ((I, H), {"bias": None}),
    ((I, H), {"batch_first": 1}),
    ((I, H), {"batch_first": "yes"}),
    ((I, H), {"dropout": 1.5, "num_layers": 2}),
    ((I, H), {"dropout": -0.1, "num_layers": 2}),
    ((I, H), {"dropout": float("nan"), "num_layers": 2}),
    ((I, H), {"dropout": True, "num_layers": 2}),
    ((I, H), {"dropout": "0.5a", "num_layers": 2}),
    ((I, H), {"dropout": 0.5}),
    ((I, H), {"dropout": 1}),
    ((I, H), {"proj_size": -1}),
    ((I, H), {"proj_size": H}),
    ((I, H), {"proj_size": H + 1}),
    ((I, H), {"no_such_argument": 1}),
    ((I, H), {"dtype": torch.int64}),
    ((I,), {}),
]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(("arguments", "options"), BAD_ARGUMENTS, ids=str)
def test_same_errors_and_warnings_from_the_constructor(kind: str, arguments: tuple[Any, ...], options: Option) -> None:
    ours, theirs = (outcome(lambda cls=cls: cls(*arguments, **options)) for cls in PAIRS[kind])
    assert theirs[0] is not None or theirs[1]
    assert ours == theirs


@pytest.mark.parametrize("kind", PAIRS)
def test_the_dropout_warning_points_to_the_caller(kind: str) -> None:
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last") as caught:
        PAIRS[kind][0](I, H, dropout=0.5)
    assert caught[0].filename == __file__


def _bad_calls() -> dict[str, Any]:
    def state(kind: str, *shape: int, dtype: torch.dtype = torch.float32) -> Any:
        h = torch.zeros(*shape, dtype=dtype)
        return (h, h) if "LSTM" in kind else h

    x = torch.zeros(T, B, I)
    packed = pack_padded_sequence(x, torch.tensor([4, 3, 1]))
    unsorted = pack_padded_sequence(x, torch.tensor([1, 4, 3]), enforce_sorted=False)
    return {
        "input 1-D": lambda m, k: m(torch.zeros(I)),
        "input 4-D": lambda m, k: m(torch.zeros(1, T, B, I)),
        "input 0-D": lambda m, k: m(torch.tensor(0.0)),
        "input size": lambda m, k: m(torch.zeros(T, B, I + 1)),
        "input size unbatched": lambda m, k: m(torch.zeros(T, I + 1)),
        "no steps": lambda m, k: m(torch.zeros(0, B, I)),
        "float64 input": lambda m, k: m(x.double()),
        "integer input": lambda m, k: m(x.long()),
        "float16 input": lambda m, k: m(x.half()),
        "state of another batch": lambda m, k: m(x, state(k, 1, B + 1, H)),
        "state of another size": lambda m, k: m(x, state(k, 1, B, H + 1)),
        "state of two layers": lambda m, k: m(x, state(k, 2, B, H)),
        "state 2-D": lambda m, k: m(x, state(k, B, H)),
        "state 4-D": lambda m, k: m(x, state(k, 1, 1, B, H)),
        "state 3-D unbatched": lambda m, k: m(x[:, 0], state(k, 1, 1, H)),
        "state float64": lambda m, k: m(x, state(k, 1, B, H, dtype=torch.float64)),
        "state float16": lambda m, k: m(x, state(k, 1, B, H, dtype=torch.float16)),
        "packed input size": lambda m, k: m(pack_padded_sequence(torch.zeros(T, B, I + 1), torch.tensor([4, 3, 1]))),
        "packed state of another batch": lambda m, k: m(packed, state(k, 1, B + 1, H)),
        "packed state of another size": lambda m, k: m(packed, state(k, 1, B, H + 1)),
        "packed unsorted, state of a smaller batch": lambda m, k: m(unsorted, state(k, 1, B - 1, H)),
        "three states": lambda m, k: m(x, (torch.zeros(1, B, H),) * 3) if k == "LSTM" else m(x, torch.zeros(3)),
        "input on another device": lambda m, k: m(x.to("meta")),
    }


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("what", _bad_calls())
def test_same_errors_from_the_call(kind: str, what: str) -> None:
    ours, theirs = pair(kind, I, H)
    call = _bad_calls()[what]
    expected = outcome(lambda: call(theirs, kind))
    actual = outcome(lambda: call(ours, kind))
    assert expected[0] is not None
    assert actual == expected


@pytest.mark.parametrize("kind", PAIRS)
def test_packed_input_of_another_dtype(kind: str) -> None:
    """torch.nn.LSTM forgets to check it and fails inside (RuntimeError); both of ours answer like torch.nn.GRU."""
    ours, _ = pair(kind, I, H)
    with pytest.raises(
        ValueError, match=r"input dtype \(torch.float64\) does not match weight dtype \(torch.float32\)"
    ):
        ours(pack_padded_sequence(torch.zeros(T, B, I).double(), torch.tensor([4, 3, 1])))


@pytest.mark.parametrize("kind", STEP_PAIRS)
@pytest.mark.parametrize(
    "what",
    ["input 3-D", "input 0-D", "input size", "batch", "state size", "state 3-D", "float64", "integer", "state float64"],
)
def test_same_errors_from_the_cells(kind: str, what: str) -> None:
    x = torch.zeros(B, I)

    def state(*shape: int, dtype: torch.dtype = torch.float32) -> Any:
        h = torch.zeros(*shape, dtype=dtype)
        return (h, h) if "LSTM" in kind else h

    calls = {
        "input 3-D": lambda m: m(torch.zeros(1, B, I)),
        "input 0-D": lambda m: m(torch.tensor(0.0)),
        "input size": lambda m: m(torch.zeros(B, I + 1)),
        "batch": lambda m: m(x, state(B + 1, H)),
        "state size": lambda m: m(x, state(B, H + 1)),
        "state 3-D": lambda m: m(x, state(1, B, H)),
        "float64": lambda m: m(x.double()),
        "integer": lambda m: m(x.long()),
        "state float64": lambda m: m(x, state(B, H, dtype=torch.float64)),
    }
    ours, theirs = pair(kind, I, H)
    expected = outcome(lambda: calls[what](theirs))
    assert expected[0] is not None
    assert outcome(lambda: calls[what](ours)) == expected


# --- dropout between the layers: torch's law, our own mask -----------------------------------------------------------


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout_between_layers(kind: str, p: float) -> None:
    """Mean, scale and share of zeros of what the second layer is fed, seen through a second layer that copies.

    The second layer's candidate is W x with tiny W, in its straight part, so its first step is proportional to its
    input.
    """
    ours, theirs = pair(kind, I, H, num_layers=2, dropout=p, dtype=torch.float64)
    x = torch.randn(1, I, dtype=torch.float64).expand(1, 20000, I)
    for module in (ours, theirs):
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name.endswith("l1"):
                    parameter.zero_()
            block = 2  # g of the LSTM, n of the GRU
            module.weight_ih_l1[block * H : (block + 1) * H] = 1e-6 * torch.eye(H)
    plain = ours.eval()(x)[0][0, 0]
    ours.train()
    seen = [module(x)[0][0] / plain for module in (ours, theirs)]
    n = seen[0].numel()
    for factor in seen:
        dropped = (factor == 0).double().mean().item()
        assert abs(dropped - p) <= SIGMAS * (p * (1 - p) / n) ** 0.5
        if p < 1:
            torch.testing.assert_close(factor[factor != 0], torch.full_like(factor[factor != 0], 1 / (1 - p)))
    # Each entry has a mask of its own.
    if p < 1:
        zero = (seen[0] == 0).double()
        assert abs(torch.corrcoef(zero.T)[0, 1].item()) <= SIGMAS / len(zero) ** 0.5


@pytest.mark.parametrize("kind", PAIRS)
def test_dropout_leaves_the_last_layer_and_the_states_alone(kind: str) -> None:
    ours, _ = pair(kind, I, H, num_layers=2, dropout=0.9)
    output, state, collected = ours(torch.randn(T, 50, I), return_states=True)
    assert (output != 0).all()
    assert (collected["h"] != 0).all()
    assert torch.equal(collected["h"][1], output)
    assert torch.equal(as_tuple(state)[0], collected["h"][:, -1])
    assert not torch.equal(ours(torch.ones(T, B, I))[0], ours(torch.ones(T, B, I))[0])


def test_packed_output_is_torch_s_when_padded_again() -> None:
    ours, theirs = pair("LSTM", I, H, bidirectional=True)
    x = pack_padded_sequence(torch.randn(T, B, I), torch.tensor([2, 4, 1]), enforce_sorted=False)
    results = [pad_packed_sequence(m(x)[0], padding_value=-7.0, total_length=6) for m in (ours, theirs)]
    assert_close(results[0], results[1], TORCH, torch.float32)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", PAIRS)
def test_final_states_can_be_changed_in_place(kind: str, layers: int) -> None:
    """As programs with truncated backpropagation do: neither the first call nor the repeated ones give views."""
    results = []
    for module in pair(kind, I, H, layers, dtype=torch.float64):
        torch.manual_seed(1)
        state, offset = None, torch.nn.Parameter(torch.full((H,), 0.5, dtype=torch.float64))
        for part in torch.randn(3 * T, B, I, dtype=torch.float64).split(T):
            output, state = module(part, state)
            (output.sum() + sum(s.square().sum() for s in as_tuple(state))).backward()
            for s in as_tuple(state):
                s.detach_()
        with torch.no_grad():
            for _ in range(2):
                state = module(part)[1]
        for s in as_tuple(state):
            s += offset
        sum(s.sum() for s in as_tuple(state)).backward()
        results.append([*as_tuple(state), offset.grad, *(p.grad for p in module.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, TORCH, torch.float64)
