"""The layers as modules: input forms, states on request, copies, parametrisations, DropConnect, reprs."""

from __future__ import annotations

import copy
import io
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import gatedrnn
from gatedrnn.gates import SigmoidOf
from gatedrnn.inits import Chrono
from tests.cells.equations import run_layer
from tests.conformance.cases import AUX_CASES, CELL_CASES, Case, as_argument, as_tuple, by_layer, random_state, spread
from tests.layers.tolerances import EQUATIONS, REGROUPED, SIGMAS, assert_close

I, H, T, B = 3, 4, 5, 3  # noqa: E741
DOUBLE = torch.float64
LENGTHS = [2, 5, 3]


def made(case: Case, **keywords: Any) -> tuple[Any, Tensor]:
    layer = case.layer(I, H, **keywords)
    spread(layer)
    torch.manual_seed(0)
    return layer, torch.randn(T, B, I, dtype=DOUBLE)


# --- input forms and states on request -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["plain", "batch_first", "lengths", "unbatched", "packed", "packed_batch_first"])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_return_states_in_every_form(case: Case, form: str) -> None:
    """Contents and shapes (L·D, T, B, size); T and B exchanged with batch_first; padded for a PackedSequence."""
    batch_first = "batch_first" in form
    options: dict[str, Any] = {"proj_size": 2} if case.cell == "lstm" else {}
    layer, x = made(case, num_layers=2, bidirectional=True, batch_first=batch_first, **options)
    state = random_state(layer, B)
    lengths = LENGTHS if form in ("lengths", "packed", "packed_batch_first") else None
    expected = run_layer(case.equation(), case.states, by_layer(layer), x, state, lengths)
    output_e, state_e, collected_e = expected

    given: Any = x.transpose(0, 1) if batch_first else x
    keywords: dict[str, Any] = {"return_states": "gates"}
    if form == "unbatched":
        given, state = x[:, 1], tuple(s[:, 1] for s in state)
        output_e, state_e = output_e[:, 1], tuple(s[:, 1] for s in state_e)
        collected_e = {name: c[:, :, 1] for name, c in collected_e.items()}
    elif form == "lengths":
        keywords["lengths"] = lengths
    elif lengths is not None:
        given = pack_padded_sequence(given, torch.tensor(lengths), batch_first, enforce_sorted=False)
    output, final, collected = layer(given, as_argument(state), **keywords)
    if isinstance(output, PackedSequence):
        output, in_order = pad_packed_sequence(output, batch_first)
        assert in_order.tolist() == lengths
    if batch_first:
        output = output.transpose(0, 1)
        collected = {name: c.transpose(1, 2) for name, c in collected.items()}
    assert_close((output, as_tuple(final), collected), (output_e, state_e, collected_e), EQUATIONS, DOUBLE)
    states = {name: collected[name] for name in case.states}
    fewer = layer(given, as_argument(state), **{**keywords, "return_states": True})[2]
    fewer = {name: c.transpose(1, 2) if batch_first else c for name, c in fewer.items()}
    torch.testing.assert_close(fewer, states, rtol=0, atol=0)
    assert len(layer(given, as_argument(state), **{**keywords, "return_states": False})) == 2


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_lengths_may_be_lists_tensors_of_any_integer_type_or_full(case: Case) -> None:
    layer, x = made(case, bidirectional=True)
    expected = layer(x, lengths=LENGTHS)
    for dtype in (torch.int64, torch.int32, torch.uint8):
        torch.testing.assert_close(layer(x, lengths=torch.tensor(LENGTHS, dtype=dtype)), expected, rtol=0, atol=0)
    torch.testing.assert_close(layer(x, lengths=tuple(LENGTHS)), expected, rtol=0, atol=0)
    torch.testing.assert_close(layer(x, lengths=[T] * B), layer(x), rtol=0, atol=0)
    packed, state = layer(pack_padded_sequence(x, torch.tensor(LENGTHS), enforce_sorted=False))
    padded = pad_packed_sequence(packed)[0]
    assert_close((padded, state), expected, REGROUPED, DOUBLE)


def test_states_carry_gradients() -> None:
    layer: Any = gatedrnn.LSTM(I, H, forget_gate="fast")
    _, _, collected = layer(torch.randn(T, B, I), return_states="gates")
    for name in ("h", "c", "forget", "input", "output"):
        (slope,) = torch.autograd.grad(collected[name].sum(), layer.weight_ih_l0, retain_graph=True)
        assert (slope != 0).any()


# --- copies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cubic(SigmoidOf):
    """A custom gate, with α⁻¹ left to the library."""

    share: float = 1.0

    def alpha(self, z: Tensor) -> Tensor:
        return z + self.share * z**3 / 3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + self.share * z**2


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_copies_give_the_same_and_share_nothing(case: Case) -> None:
    layer, x = made(case, num_layers=2, bidirectional=True)
    step = case.step(I, H)
    expected = layer(x)[0]
    for module, given in ((layer, x), (step, x[0])):
        for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            torch.testing.assert_close(twin(given), module(given), rtol=0, atol=0)
            assert repr(twin) == repr(module)
            assert not {p.data_ptr() for p in twin.parameters()} & {p.data_ptr() for p in module.parameters()}
            nn.init.ones_(next(twin.parameters()))
    assert torch.equal(layer(x)[0], expected)

    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = case.layer(I, H, num_layers=2, bidirectional=True)
    other.load_state_dict(torch.load(file, weights_only=True), strict=True)
    assert torch.equal(other(x)[0], expected)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "JANET", "UGRNN", "MinimalRNN", "FastGRNN", "MGU"])
def test_a_gate_of_ones_own_works_everywhere(name: str) -> None:
    gate = Cubic(share=0.5)
    torch.manual_seed(0)
    layer = getattr(gatedrnn, name)(I, H, forget_gate=gate, forget_init=Chrono(30.0), dtype=DOUBLE)
    torch.manual_seed(0)
    step = getattr(gatedrnn, name + "Cell")(I, H, forget_gate=gate, forget_init=Chrono(30.0), dtype=DOUBLE)
    x = torch.randn(T, B, I, dtype=DOUBLE)
    state = None
    for x_t in x:
        state = step(x_t, state)
    assert_close(as_tuple(layer(x)[1])[0][0], as_tuple(state)[0], REGROUPED, DOUBLE)
    assert gatedrnn.time_scales(layer)["l0"].min() > 1
    assert gatedrnn.time_scales(layer)["l0"].max() < 30
    _, _, collected = layer(x, return_states="gates")
    assert "forget" in collected
    assert "Cubic(share=0.5)" in repr(layer)
    layer(x)[0].sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())
    other = gatedrnn.convert(nn.LSTM(I, H), gate, match="bias")
    assert other.forget_gate == gate


# --- weights are looked up at every call -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_functional_call(case: Case) -> None:
    layer, x = made(case)
    other = case.layer(I, H)
    spread(other, seed=9)
    actual = functional_call(layer, dict(other.named_parameters()), (x,))
    torch.testing.assert_close(actual, other(x), rtol=0, atol=0)


class _Scaled(nn.Module):
    """Twice the weight; counts how often it was asked."""

    calls = 0

    def forward(self, weight: Tensor) -> Tensor:
        self.calls += 1
        return 2 * weight

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight / 2


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_parametrisations_are_honoured_once_a_call(case: Case) -> None:
    """Of every weight, in layers and steps, with gradients to the original."""
    layer, x = made(case, num_layers=2, bidirectional=True)
    step = case.step(I, H)
    spread(step)
    for module, given in ((layer, x), (step, x[0])):
        plain = copy.deepcopy(module)
        with torch.no_grad():
            for p in plain.parameters():
                p.mul_(2)
        names = [name for name, _ in module.named_parameters()]
        for name in names:
            parametrize.register_parametrization(module, name, _Scaled(), unsafe=False)
            with torch.no_grad():
                module.parametrizations[name].original.mul_(2)
        counters = [module.parametrizations[name][0] for name in names]
        for counter in counters:
            counter.calls = 0
        result = module(given)
        assert {counter.calls for counter in counters} == {1}
        torch.testing.assert_close(result, plain(given), rtol=0, atol=0)
        first = result[0] if isinstance(result, tuple) else result
        first.sum().backward()
        assert any((module.parametrizations[name].original.grad != 0).any() for name in names)
        with torch.no_grad():
            module.parametrizations[names[0]].original.zero_()
            next(plain.parameters()).zero_()
        torch.testing.assert_close(module(given), plain(given), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
def test_weight_norm_and_spectral_norm(kind: str) -> None:
    x = torch.randn(T, B, I)
    for wrap in (parametrizations.weight_norm, parametrizations.spectral_norm, nn.utils.weight_norm):
        made = []
        for module in (getattr(gatedrnn, kind), getattr(nn, kind)):
            torch.manual_seed(0)
            made.append(wrap(module(I, H), "weight_hh_l0").eval())
        torch.testing.assert_close(made[0](x), made[1](x), rtol=2e-5, atol=2e-5)
    normed = parametrizations.weight_norm(getattr(gatedrnn, kind)(I, H), "weight_hh_l0")
    before = normed(x)[0]
    optimiser = torch.optim.SGD(normed.parameters(), lr=1.0)
    before.sum().backward()
    original = normed.parametrizations.weight_hh_l0.original0
    assert (original.grad != 0).any()
    optimiser.step()
    assert not torch.equal(normed(x)[0], before)


def test_dtype_moves_and_frozen_parameters() -> None:
    layer: Any = gatedrnn.LSTM(I, H, 2, forget_gate="fast")
    x = torch.randn(T, B, I, dtype=DOUBLE)
    single = layer(x.float())[0]
    layer.to(DOUBLE)
    double = layer(x)[0]
    assert double.dtype == DOUBLE
    torch.testing.assert_close(double.float(), single, rtol=2e-5, atol=2e-5)
    layer.requires_grad_(False)
    layer.bias_ih_l1.requires_grad_()
    layer(x)[0].sum().backward()
    assert [name for name, p in layer.named_parameters() if p.grad is not None] == ["bias_ih_l1"]
    assert not layer.requires_grad_(False)(x)[0].requires_grad


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_backward_in_eval_mode(case: Case) -> None:
    layer, x = made(case)
    in_training = torch.autograd.grad(layer(x)[0].sum(), list(layer.parameters()))
    layer.eval()
    torch.testing.assert_close(torch.autograd.grad(layer(x)[0].sum(), list(layer.parameters())), in_training)


# --- repr ------------------------------------------------------------------------------------------------------------


def test_repr_shows_what_is_not_default() -> None:
    layer: Any = gatedrnn.LSTM(
        I,
        H,
        2,
        proj_size=2,
        forget_gate="fast",
        tied=True,
        forget_init=Chrono(50.0),
        weight_dropout=0.5,
        recompute=True,
    )
    assert repr(layer) == (
        "LSTM(3, 4, proj_size=2, num_layers=2, forget_gate=Fast(), forget_init=Chrono(t_max=50.0), "
        "weight_dropout=0.5, recompute=True, tied=True)"
    )
    assert repr(gatedrnn.NRU(I, H)) == "NRU(3, 4)"
    assert repr(gatedrnn.NRU(I, H, memory_size=16, relu=False)) == "NRU(3, 4, memory_size=16, relu=False)"
    assert repr(gatedrnn.JANET(I, H, beta=0.5, engine="reference")) == "JANET(3, 4, engine='reference', beta=0.5)"
    assert repr(gatedrnn.LSTMCell(I, H, False, tied=True)) == "LSTMCell(3, 4, bias=False, tied=True)"
    assert repr(gatedrnn.GRUCell(I, H, forget_gate="softsign")) == "GRUCell(3, 4, forget_gate=Softsign())"


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_all_weights_are_the_parameters(case: Case) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=True)
    flat = [w for weights in layer.all_weights for w in weights]
    assert len(layer.all_weights) == 4
    assert [id(w) for w in flat] == [id(p) for p in layer.parameters()]


# --- DropConnect -----------------------------------------------------------------------------------------------------


def recurrent_parts(case: Case, layer: Any) -> dict[str, slice]:
    """Names and columns of the weights that DropConnect thins, from the contract."""
    if case.cell == "nru":
        return {"W_h_l0": slice(I, None)}
    stem = "U" if case.cell in ("minimal_rnn", "fastgrnn") else "weight_hh"
    names = [f"{stem}_l0"] + ([f"{stem}_aux_l0"] if case.aux else [])
    return {name: slice(None) for name in names}


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_drop_connect_is_one_scaled_mask_per_call(case: Case) -> None:
    """The whole call equals a call with fixed, masked weights: found from the gradient, which is zero where dropped."""
    p = 0.4
    layer, x = made(case, weight_dropout=p)
    output, _ = layer(x)
    output.pow(2).sum().backward()
    fixed = copy.deepcopy(layer).eval()
    parts = recurrent_parts(case, layer)
    dropped = 0
    with torch.no_grad():
        for name, columns in parts.items():
            kept = (layer.get_parameter(name).grad[:, columns] != 0).double()
            dropped += int((kept == 0).sum())
            fixed.get_parameter(name)[:, columns] *= kept / (1 - p)
    assert dropped > 0
    assert_close(fixed(x)[0], output, REGROUPED, DOUBLE)
    rectified = dict(case.options).get("relu", False)  # then heads may be off and have no gradient
    for name, parameter in layer.named_parameters():
        if name not in parts and not name.startswith(("b_h", "W_h")) and not rectified:
            assert (parameter.grad != 0).float().mean() > 0.6, name
    assert not torch.equal(layer(x)[0], output)  # a new mask for every call
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
    plain = case.layer(I, H)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x)[0], plain(x)[0])


@pytest.mark.parametrize("recompute", [False, True])
def test_drop_connect_law(recompute: bool) -> None:
    """The share of zeros, a mask of its own for each layer and direction, and the same mask when computed again."""
    p, size = 0.3, 40
    torch.manual_seed(0)
    layer: Any = gatedrnn.LSTM(size, size, 2, bidirectional=True, weight_dropout=p, recompute=recompute, dtype=DOUBLE)
    layer(torch.randn(T, 2, size, dtype=DOUBLE))[0].sum().backward()
    masks = [p.grad == 0 for name, p in layer.named_parameters() if "weight_hh" in name]
    n = masks[0].numel()
    for index, mask in enumerate(masks):
        assert abs(mask.double().mean().item() - p) <= SIGMAS * (p * (1 - p) / n) ** 0.5
        for other in masks[:index]:
            both = (mask & other).double().mean().item()
            assert abs(both - p * p) <= SIGMAS * (p * p * (1 - p * p) / n) ** 0.5


def test_drop_connect_extremes() -> None:
    layer: Any = gatedrnn.GRU(I, H, weight_dropout=1.0)
    x = torch.randn(T, B, I)
    zeroed = copy.deepcopy(layer).eval()
    nn.init.zeros_(zeroed.weight_hh_l0)
    torch.testing.assert_close(layer(x)[0], zeroed(x)[0])
    bad: Any
    for bad in (-0.1, 1.1, float("nan"), "half", True):
        with pytest.raises(ValueError, match="weight_dropout should be a number in range"):
            gatedrnn.GRU(I, H, weight_dropout=bad)


def test_gate_values_are_those_of_the_kernel_under_autocast() -> None:
    """The kernel computes in float32 there; so do the gate values, and the time scales on data."""
    layer, x = gatedrnn.LSTM(64, 64, forget_gate="fast"), 5 * torch.randn(5, 2, 64)
    expected, scales = layer(x, return_states="gates")[2], gatedrnn.time_scales(layer, x)["l0"]
    with torch.autocast("cpu", torch.bfloat16):
        found, measured = layer(x, return_states="gates")[2], gatedrnn.time_scales(layer, x)["l0"]
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(measured.mean, scales.mean, rtol=1e-5, atol=0)
