"""convert: the same parameters under another gate, in any model."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import gatedrnn
from gatedrnn.gates import GATES
from tests.cells.equations import PHI, sigma
from tests.layers.tolerances import BIAS, TORCH, assert_close

KINDS: dict[Any, Any] = {nn.LSTM: gatedrnn.LSTM, nn.GRU: gatedrnn.GRU}
# torch names its own kernel; ours has no such kernel to name.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")


class Model(nn.Module):
    """Layers at several depths, one of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 4), nn.LSTM(4, 5, 2, batch_first=True, dropout=0.5))
        self.layers = nn.ModuleList([nn.GRU(5, 5, bidirectional=True), nn.Linear(10, 5)])
        self.heads = nn.ModuleDict({"a": nn.LSTM(5, 5, proj_size=2), "b": nn.Linear(5, 1)})
        self.again = self.layers[0]
        self.nothing: nn.Module | None = None

    def forward(self, x: torch.Tensor) -> Any:
        y, _ = self.encoder(x)
        y, _ = self.layers[0](y)
        y, _ = self.again(self.layers[1](y))
        return self.heads["a"](self.layers[1](y))


def test_nested_models_keep_parameters_sharing_and_modes() -> None:
    torch.manual_seed(0)
    model = Model()
    model.layers.eval()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    state = copy.deepcopy(model.state_dict())
    assert gatedrnn.convert(model, forget_gate="fast") is model
    kinds = {name: type(m) for name, m in model.named_modules() if isinstance(m, gatedrnn.LSTM | gatedrnn.GRU)}
    assert kinds == {"encoder.1": gatedrnn.LSTM, "layers.0": gatedrnn.GRU, "heads.a": gatedrnn.LSTM}
    assert model.again is model.layers[0]
    assert not any(isinstance(m, nn.LSTM | nn.GRU) for m in model.modules())
    assert [m.training for m in (model.encoder[1], model.layers[0], model.heads["a"])] == [True, False, True]
    converted = dict(model.named_parameters(remove_duplicate=False))
    assert list(converted) == list(parameters)
    assert all(converted[name] is parameters[name] for name in parameters)
    assert list(model.state_dict()) == list(state)
    assert_close(dict(model.state_dict()), dict(state), TORCH, torch.float32)
    layer: Any = model.encoder[1]
    assert (layer.num_layers, layer.batch_first, layer.dropout) == (2, True, 0.5)
    assert layer.forget_gate == gatedrnn.gates.Fast()
    assert model.heads["a"].proj_size == 2


@pytest.mark.parametrize("match", [None, "bias"])
def test_the_sigmoid_leaves_outputs_unchanged(match: Any) -> None:
    torch.manual_seed(0)
    model = Model().eval()
    x = torch.randn(6, 4, 3)
    expected = model(x)
    assert_close(gatedrnn.convert(model, "sigmoid", match=match)(x), expected, TORCH, torch.float32)


def test_another_gate_changes_outputs() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4)
    x = torch.randn(6, 2, 3)
    before = layer(x)[0]
    after = gatedrnn.convert(layer, "fast")(x)[0]
    assert (before - after).abs().max() > 1e-4
    direct = gatedrnn.LSTM(3, 4, forget_gate="fast")
    direct.load_state_dict(layer.state_dict())
    assert torch.equal(direct(x)[0], after)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_itself_may_be_a_layer(kind: type[nn.Module], bidirectional: bool) -> None:
    layer = kind(3, 4, 2, bidirectional=bidirectional, dtype=torch.float64)
    converted: Any = gatedrnn.convert(layer, forget_gate="fast")
    assert type(converted) is KINDS[kind]
    assert [id(p) for p in converted.parameters()] == [id(p) for p in layer.parameters()]
    assert not converted.eval().training


def test_an_optimiser_goes_on_working() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LSTM(3, 4))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    x = torch.randn(5, 2, 3)

    def update() -> float:
        optimiser.zero_grad()
        loss = (model(x)[0] - 0.3).pow(2).mean()
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    first = update()
    gatedrnn.convert(model, forget_gate="fast")
    before = [p.detach().clone() for p in model.parameters()]
    losses = [update() for _ in range(20)]
    assert all(not torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    assert losses[-1] < 0.5 * first


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gate", GATES)
def test_match_moves_the_forget_bias_and_nothing_else(gate: str, kind: type[nn.Module], dtype: torch.dtype) -> None:
    """φ(b′) = σ(b), every layer and direction."""
    torch.manual_seed(0)
    model = nn.Sequential(kind(3, 4, 2, bidirectional=True, dtype=dtype))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.mul_(4)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    gatedrnn.convert(model, forget_gate=gate, match="bias")
    after = dict(model.named_parameters())
    changed = 0
    for name, value in before.items():
        if "bias_ih" in name:
            other = name.replace("_ih_", "_hh_")
            old, new = (value + before[other]).double()[4:8], (after[name] + after[other]).detach().double()[4:8]
            aux = []
            if gate == "refine":
                aux_name = name.replace("_l", "_aux_l")
                aux = [(after[aux_name] + after[aux_name.replace("_ih", "_hh")]).double()]
            assert_close(PHI[gate](new, *aux), sigma(old), {torch.float64: BIAS[dtype]}, torch.float64)
            assert torch.equal(torch.cat([value[:4], value[8:]]), torch.cat([after[name][:4], after[name][8:]]))
            changed += not torch.equal(value[4:8], after[name][4:8])
        else:
            assert torch.equal(value, after[name])
    assert changed == (0 if gate in ("sigmoid", "refine") and dtype == torch.float64 else changed)
    assert changed == 4 or gate in ("sigmoid", "refine")


def test_match_keeps_time_scales() -> None:
    torch.manual_seed(0)
    layer: Any = nn.LSTM(3, 4, dtype=torch.float64)
    with torch.no_grad():
        layer.bias_ih_l0[4:8] = torch.tensor([0.0, 2.0, 8.0, -3.0])
    before = gatedrnn.time_scales(layer)
    after = gatedrnn.time_scales(gatedrnn.convert(layer, "fast", match="bias"))
    torch.testing.assert_close(after, before, rtol=1e-10, atol=0)


def test_refine_adds_its_own_parameters() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.GRU(3, 4, dtype=torch.float64))
    gatedrnn.convert(model, forget_gate="refine")
    aux = {name: p for name, p in model.named_parameters() if "aux" in name}
    assert {name: tuple(p.shape) for name, p in aux.items()} == {
        "0.weight_ih_aux_l0": (4, 3),
        "0.weight_hh_aux_l0": (4, 4),
        "0.bias_ih_aux_l0": (4,),
        "0.bias_hh_aux_l0": (4,),
    }
    for p in aux.values():
        assert p.dtype == torch.float64
        assert p.device.type == "cpu"
        assert 0 < p.abs().max() <= 0.5
    model[0](torch.randn(5, 2, 3, dtype=torch.float64))[0].sum().backward()
    assert all(p.grad is not None and (p.grad != 0).any() for p in aux.values())


def test_parameters_tied_inside_a_layer_stay_tied() -> None:
    layer = nn.LSTM(4, 4, 2)
    layer.weight_hh_l1 = layer.weight_hh_l0
    layer.bias_ih_l1, layer.bias_hh_l1 = layer.bias_ih_l0, layer.bias_hh_l0
    x = torch.randn(5, 2, 4)
    expected = layer(x)[0]
    converted: Any = gatedrnn.convert(layer, "sigmoid")
    assert converted.weight_hh_l1 is converted.weight_hh_l0 is layer.weight_hh_l0
    assert_close(converted(x)[0], expected, TORCH, torch.float32)
    scales = gatedrnn.time_scales(layer)
    matched = gatedrnn.convert(layer, "fast", match="bias")
    torch.testing.assert_close(gatedrnn.time_scales(matched), scales, rtol=1e-4, atol=0)


def test_parameters_shared_by_two_layers_are_moved_once() -> None:
    model = nn.ModuleList([nn.LSTM(3, 4), nn.LSTM(3, 4)])
    for name, parameter in list(model[0].named_parameters()):
        setattr(model[1], name, parameter)
    scales = gatedrnn.time_scales(model[0])
    gatedrnn.convert(model, "softsign", match="bias")
    for layer in model:
        torch.testing.assert_close(gatedrnn.time_scales(layer), scales, rtol=1e-4, atol=0)


def test_requires_grad_device_and_dtype_are_kept() -> None:
    layer = nn.LSTM(3, 4, dtype=torch.bfloat16).requires_grad_(False)
    layer.bias_hh_l0.requires_grad_()
    converted: Any = gatedrnn.convert(layer, "fast", match="bias")
    assert [n for n, p in converted.named_parameters() if p.requires_grad] == ["bias_hh_l0"]
    assert all(p.dtype == torch.bfloat16 for p in converted.parameters())
    assert all(p.is_meta for p in gatedrnn.convert(nn.GRU(3, 4, device="meta"), "refine").parameters())


class _Subclass(nn.LSTM):
    pass


def _hooked(register: str) -> nn.Module:
    layer = nn.LSTM(3, 4)
    getattr(layer, register)(lambda *a: None)
    return layer


HOOKS = [
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "register_state_dict_post_hook",
]


@pytest.mark.parametrize("make", ["subclass", "parametrisation", *HOOKS])
def test_what_would_be_lost_is_refused_by_name_and_nothing_changes(make: str) -> None:
    if make == "subclass":
        bad: nn.Module = _Subclass(3, 4)
        word = "_Subclass"
    elif make == "parametrisation":
        bad, word = nn.utils.parametrizations.weight_norm(nn.LSTM(3, 4), "weight_hh_l0"), "parametrisation"
    else:
        bad, word = _hooked(make), "hook"
    model = nn.ModuleDict({"good": nn.LSTM(3, 4), "deep": nn.Sequential(nn.Identity(), bad)})
    before = dict(model.named_modules())
    state = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=rf"^deep\.1: .*{word}"):
        gatedrnn.convert(model, "fast", match="bias")
    assert dict(model.named_modules()) == before
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    with pytest.raises(ValueError, match=word):
        gatedrnn.convert(bad, "fast")


def test_what_was_added_to_a_layer_moves_with_it() -> None:
    """Buffers, persistent or not, submodules, parameters and attributes: the same objects under the same names."""
    layer: Any = nn.LSTM(3, 4)
    layer.register_buffer("mean", torch.arange(3.0))
    layer.register_buffer("scratch", torch.ones(2), persistent=False)
    layer.register_buffer("nothing", None)
    layer.register_parameter("scale", nn.Parameter(torch.tensor(2.0)))
    layer.register_parameter("unused", None)
    layer.head = nn.Sequential(nn.GRU(4, 2), nn.Linear(2, 1)).eval()
    layer.notes, layer._is_initialised, layer.plain = {"author": "me"}, True, torch.zeros(2)
    model = nn.ModuleDict({"rnn": layer})
    state = copy.deepcopy(model.state_dict())
    added = {name: getattr(layer, name) for name in ("mean", "scratch", "scale", "head", "notes", "plain")}
    converted: Any = gatedrnn.convert(model, "fast")["rnn"]
    assert type(converted) is gatedrnn.LSTM
    for name, value in added.items():
        assert getattr(converted, name) is value, name
    assert converted._is_initialised is True and converted.nothing is None and converted.unused is None
    assert set(model.state_dict()) == set(state)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert type(converted.head[0]) is gatedrnn.GRU, "a layer inside a layer is converted too"
    assert converted.training and not converted.head.training
    assert dict(converted.named_buffers()).keys() == {"mean", "scratch"}
    model.double()
    assert converted.mean.dtype == torch.float64


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("forward", "attribute"),  # torch itself refuses a buffer or a module of this name
        *itertools.product(
            ["cell", "engine", "forget_gate", "recompute", "weights_by_layer", "tied"],
            ["attribute", "buffer", "module"],
        ),
    ],
)
def test_an_added_name_with_another_meaning_is_refused(name: str, kind: str) -> None:
    layer: Any = nn.LSTM(3, 4)
    value = {"attribute": "mine", "buffer": torch.zeros(1), "module": nn.Identity()}[kind]
    if kind == "buffer":
        layer.register_buffer(name, value)
    else:
        setattr(layer, name, value)
    model = nn.Sequential(nn.GRU(3, 3), layer)
    with pytest.raises(ValueError, match=f"^1: its attribute '{name}' means something else in gatedrnn.LSTM"):
        gatedrnn.convert(model, "fast")
    assert type(model[0]) is nn.GRU and model[1] is layer


def test_names_of_the_auxiliary_gate_are_taken_only_where_it_is() -> None:
    layer: Any = nn.GRU(3, 4)
    layer.weight_ih_aux_l0 = "mine"
    with pytest.raises(ValueError, match="'weight_ih_aux_l0' means something else"):
        gatedrnn.convert(layer, "refine")
    assert gatedrnn.convert(layer, "fast").weight_ih_aux_l0 == "mine"


def test_a_weight_that_is_no_parameter_is_refused() -> None:
    layer: Any = nn.LSTM(3, 4)
    frozen = layer.weight_hh_l0.detach()
    del layer.weight_hh_l0
    layer.register_buffer("weight_hh_l0", frozen)
    with pytest.raises(ValueError, match="^the model: weight_hh_l0 is not a parameter"):
        gatedrnn.convert(layer, "fast")


def test_a_compiled_layer_is_refused() -> None:
    layer = nn.LSTM(3, 4)
    layer.compile(backend="eager")
    with pytest.raises(ValueError, match="^the model: is compiled and would run the old layer; convert, then compile$"):
        gatedrnn.convert(layer, "fast")


def test_bad_arguments() -> None:
    model: Any = nn.Sequential(nn.LSTM(3, 4, bias=False))
    with pytest.raises(ValueError, match=r"^0: .*bias=False"):
        gatedrnn.convert(model, "fast", match="bias")
    with pytest.raises(ValueError, match="'weights'"):
        gatedrnn.convert(model, "fast", match="weights")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'fat'"):
        gatedrnn.convert(model, "fat")
    assert isinstance(model[0], nn.LSTM)
    gatedrnn.convert(model, "fast")
    assert isinstance(model[0], gatedrnn.LSTM)
    with pytest.warns(UserWarning, match="Linear contains no recurrent layer with a gate"):
        gatedrnn.convert(nn.Linear(2, 2), "fast")


def test_the_dropout_warning_is_not_repeated() -> None:
    with pytest.warns(UserWarning, match="dropout option"):
        layer = nn.LSTM(3, 4, dropout=0.5)
    assert gatedrnn.convert(layer, "fast").dropout == 0.5


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell], ids=lambda kind: kind.__name__)
def test_single_steps_are_swapped_too(kind: type[Any], bias: bool) -> None:
    torch.manual_seed(0)
    cell, x = kind(3, 4, bias=bias), torch.randn(2, 3)
    model = nn.ModuleDict({"step": cell})
    before, parameters = cell(x), list(cell.parameters())
    gatedrnn.convert(model, "sigmoid")
    step = model["step"]
    assert type(step) is getattr(gatedrnn, kind.__name__)
    assert all(a is b for a, b in zip(step.parameters(), parameters, strict=True))
    for a, b in zip(_tuple(step(x)), _tuple(before), strict=True):
        assert_close(a, b, TORCH, torch.float32)


def _tuple(state: Any) -> tuple[torch.Tensor, ...]:
    return state if isinstance(state, tuple) else (state,)


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "JANET", "UGRNN", "MinimalRNN", "FastGRNN", "MGU"])
def test_our_own_layers_change_their_gate_in_place(cell: str) -> None:
    """From gate to gate each unit keeps its time scale; the parameters stay the same objects."""
    layer = getattr(gatedrnn, cell)(3, 5, 2, forget_gate="fast", bidirectional=True)
    step = getattr(gatedrnn, f"{cell}Cell")(3, 5, forget_gate="fast")
    model = nn.ModuleDict({"layer": layer, "step": step})
    parameters = list(model.parameters())
    before = [gatedrnn.time_scales(layer), gatedrnn.time_scales(step)]
    for gate in ("softsign", "sigmoid", "polynomial", "fast"):
        assert gatedrnn.convert(model, gate, match="bias") is model
        assert model["layer"] is layer and layer.forget_gate == step.forget_gate == gatedrnn.gates.GATES[gate]()
        assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
        for old, module in zip(before, (layer, step), strict=True):
            for key, scales in gatedrnn.time_scales(module).items():
                torch.testing.assert_close(scales, old[key], rtol=1e-5, atol=0)


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_our_own_layers_get_an_auxiliary_gate(cell: str) -> None:
    torch.manual_seed(0)
    layer = getattr(gatedrnn, cell)(3, 5, 2, forget_gate="fast", dtype=torch.float64).eval()
    step = getattr(gatedrnn, f"{cell}Cell")(3, 5, forget_gate="fast")
    old, scales = dict(layer.named_parameters()), gatedrnn.time_scales(layer)
    gatedrnn.convert(nn.ModuleList([layer, step]), "refine", match="bias")
    fresh = getattr(gatedrnn, cell)(3, 5, 2, forget_gate="refine", dtype=torch.float64)
    kinds = [{name: (p.shape, p.dtype) for name, p in module.named_parameters()} for module in (layer, fresh)]
    assert kinds[0] == kinds[1]
    assert all(layer.get_parameter(name) is parameter for name, parameter in old.items()) and not layer.training
    for key, values in gatedrnn.time_scales(layer).items():
        torch.testing.assert_close(values, scales[key], rtol=1e-10, atol=0)
    fresh.load_state_dict(layer.state_dict())
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    assert torch.equal(layer(x)[0], fresh(x)[0])
    step(torch.randn(2, 3))
    with pytest.raises(
        ValueError, match=r"0: cannot change Refine\(\) to Fast\(\), which has no auxiliary weights; make a new"
    ):
        gatedrnn.convert(nn.ModuleList([layer]), "fast")


def test_match_with_one_parameter_for_both_biases() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(2, 3)
    layer.bias_hh_l0 = layer.bias_ih_l0
    scales = gatedrnn.time_scales(layer)
    converted: Any = gatedrnn.convert(layer, "fast", match="bias")
    assert converted.bias_hh_l0 is converted.bias_ih_l0
    torch.testing.assert_close(gatedrnn.time_scales(converted), scales, rtol=1e-5, atol=0)


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_an_optimiser_of_a_layer_with_a_new_auxiliary_gate_fits_a_fresh_one(cell: str) -> None:
    """Optimisers number the parameters: their order is that of a fresh layer, what was added comes last."""
    layer = getattr(gatedrnn, cell)(3, 3, 2, bidirectional=True)
    layer.register_parameter("added", nn.Parameter(torch.zeros(1)))
    gatedrnn.convert(layer, "refine")
    fresh = getattr(gatedrnn, cell)(3, 3, 2, bidirectional=True, forget_gate="refine")
    assert [name for name, _ in layer.named_parameters()] == [*(name for name, _ in fresh.named_parameters()), "added"]


def test_weights_of_our_own_that_are_computed_are_refused() -> None:
    layer = gatedrnn.LSTM(2, 3)
    prune.random_unstructured(layer, "bias_ih_l0", 0.5)
    message = "the model: bias_ih_l0 is not a parameter; make it one first"
    for gate, match in (("fast", "bias"), ("refine", None)):
        names = list(layer._parameters)
        with pytest.raises(ValueError, match=message):
            gatedrnn.convert(layer, gate, match=match)  # type: ignore[arg-type]
        assert list(layer._parameters) == names and layer.forget_gate == gatedrnn.gates.Sigmoid()
    assert gatedrnn.convert(layer, "fast").forget_gate == gatedrnn.gates.Fast()  # the biases stay as they are


@dataclass(frozen=True)
class _PerUnit(gatedrnn.gates.SigmoidOf):
    c: Tensor

    def alpha(self, z: Tensor) -> Tensor:
        return z + self.c * z**3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + 3 * self.c * z**2


def test_gates_with_a_tensor_are_exchanged() -> None:
    layer = gatedrnn.LSTM(2, 3, forget_gate=_PerUnit(torch.ones(3)))
    new = _PerUnit(2 * torch.ones(3))
    assert gatedrnn.convert(layer, new).forget_gate is new


def test_what_a_user_called_aux_is_kept() -> None:
    layer = gatedrnn.LSTM(2, 3)
    layer.aux_scale = scale = nn.Parameter(torch.full((3,), 7.0))
    layer.aux = nn.Linear(3, 1)
    gatedrnn.convert(layer, "refine")
    assert layer.aux_scale is scale and scale.tolist() == [7.0] * 3
    fresh = gatedrnn.LSTM(2, 3, forget_gate="refine").state_dict().keys()
    assert {name for name in layer.state_dict() if "l0" in name} == fresh
    assert all(parameter.abs().max() < 8 for parameter in layer.parameters())  # nothing is left undefined


def test_a_compiled_layer_is_refused_and_nothing_is_changed() -> None:
    """The compiled module calls the layer that it was made of, whatever stands in its place."""
    layer = nn.LSTM(2, 3)
    compiled = torch.compile(layer, backend="eager")
    model = nn.Sequential(nn.GRU(2, 2), compiled)
    with pytest.raises(ValueError, match="1: is compiled and would run the old layer; convert, then compile"):
        gatedrnn.convert(model, "fast")
    assert type(model[0]) is nn.GRU
    inside = torch.compile(nn.Sequential(nn.LSTM(2, 3)), backend="eager")  # looked up at each call
    x = torch.randn(4, 1, 2)
    converted = gatedrnn.convert(inside, "fast")
    torch.testing.assert_close(converted(x)[0], converted._orig_mod[0](x)[0])


@pytest.mark.parametrize("shared", ["b_z_l0", "b_u_l0"])
def test_matched_biases_of_a_minimal_rnn_that_shares_one(shared: str) -> None:
    model = nn.ModuleList([gatedrnn.MinimalRNN(2, 3), gatedrnn.MinimalRNN(2, 3)])
    setattr(model[1], shared, getattr(model[0], shared))
    before = [gatedrnn.time_scales(layer)["l0"] for layer in model]  # type: ignore[arg-type]
    gatedrnn.convert(model, "fast", match="bias")
    after = [gatedrnn.time_scales(layer)["l0"] for layer in model]  # type: ignore[arg-type]
    torch.testing.assert_close(after, before, rtol=1e-5, atol=0)


def test_matched_biases_of_which_one_is_shared() -> None:
    """Of the second layer the other bias is moved."""
    layer = nn.LSTM(2, 3, 2)
    layer.bias_ih_l1 = layer.bias_ih_l0
    before = gatedrnn.time_scales(layer)
    torch.testing.assert_close(
        gatedrnn.time_scales(gatedrnn.convert(layer, "fast", match="bias")), before, rtol=1e-5, atol=0
    )


def test_biases_shared_in_different_pairs_are_refused() -> None:
    layer = nn.LSTM(2, 3, 3)
    layer.bias_hh_l1 = layer.bias_ih_l0
    layer.bias_hh_l2, layer.bias_ih_l2 = layer.bias_hh_l0, layer.bias_ih_l1
    values = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match="layers share biases in different pairs"):
        gatedrnn.convert(layer, "fast", match="bias")
    torch.testing.assert_close(layer.state_dict(), values, rtol=0, atol=0)


def test_a_bias_beyond_its_dtype_is_the_largest_and_is_warned_about() -> None:
    layer = nn.LSTM(2, 3)
    with torch.no_grad():
        layer.bias_ih_l0.fill_(100.0)
    with pytest.warns(UserWarning, match="forget biases beyond the range of their dtype are set to its largest number"):
        converted: Any = gatedrnn.convert(layer, "softsign", match="bias")
    assert converted.bias_ih_l0[3:6].tolist() == [torch.finfo(torch.float32).max] * 3


@dataclass(frozen=True, eq=False)
class _WithArray(gatedrnn.gates.SigmoidOf):
    c: Any

    def alpha(self, z: Tensor) -> Tensor:
        return z

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.ones_like(z)


def test_gates_with_an_array_are_exchanged() -> None:
    """Arrays have no common truth, and say so with another error than tensors."""
    layer = gatedrnn.LSTM(2, 3, forget_gate=_WithArray(np.ones(3)))
    new = _WithArray(2 * np.ones(3))
    assert gatedrnn.convert(layer, new).forget_gate is new


def test_shared_biases_and_a_new_auxiliary_gate() -> None:
    """The biases of the auxiliary gate are not shared."""
    model = nn.ModuleList([gatedrnn.LSTM(2, 3), gatedrnn.LSTM(2, 3)])
    model[1].bias_ih_l0, model[1].bias_hh_l0 = model[0].bias_ih_l0, model[0].bias_hh_l0
    before = [gatedrnn.time_scales(layer)["l0"] for layer in model]  # type: ignore[arg-type]
    gatedrnn.convert(model, "refine", match="bias")
    after = [gatedrnn.time_scales(layer)["l0"] for layer in model]  # type: ignore[arg-type]
    torch.testing.assert_close(after, before, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("old", "new"), [(("sigmoid", "fast"), "softsign"), (("fast", "sigmoid"), "fast")])
def test_shared_biases_of_different_gates_are_refused(old: tuple[str, str], new: str) -> None:
    model = nn.ModuleList([gatedrnn.LSTM(2, 3, forget_gate=gate) for gate in old])
    model[1].bias_ih_l0, model[1].bias_hh_l0 = model[0].bias_ih_l0, model[0].bias_hh_l0
    with pytest.raises(ValueError, match="share biases in different pairs or with different gates"):
        gatedrnn.convert(model, new, match="bias")
    assert [gatedrnn.gates.name_of(layer.forget_gate) for layer in model] == list(old)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Bounded(gatedrnn.gates.SigmoidOf):
    """σ(tanh z): no z has the value of a forget bias beyond 1."""

    def alpha(self, z: Tensor) -> Tensor:
        return torch.tanh(z)

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 - torch.tanh(z) ** 2


def test_a_value_that_the_gate_does_not_have_is_refused_and_nothing_changes() -> None:
    own = gatedrnn.GRU(2, 3, forget_gate="fast")
    model = nn.ModuleList([own, gatedrnn.LSTM(2, 3, forget_init=gatedrnn.inits.Constant(0.9)), nn.LSTM(2, 3)])
    values, modules = copy.deepcopy(model.state_dict()), list(model)
    with pytest.raises(ValueError, match="no pre-activation z has α"):
        gatedrnn.convert(model, _Bounded(), match="bias")
    assert list(model) == modules
    assert own.forget_gate == gatedrnn.gates.Fast()
    torch.testing.assert_close(model.state_dict(), values, rtol=0, atol=0)


@pytest.mark.parametrize("gate", sorted(gatedrnn.gates.GATES))
def test_layers_on_the_meta_device_are_matched(gate: str) -> None:
    converted: Any = gatedrnn.convert(nn.LSTM(2, 3, device="meta"), gate, match="bias")
    assert converted.forget_gate == gatedrnn.gates.GATES[gate]()
    assert {p.device.type for p in converted.parameters()} == {"meta"}
