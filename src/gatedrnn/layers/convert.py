"""convert: change the forget gate of the recurrent layers of an existing model."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from gatedrnn import gates
from gatedrnn.cells.base import AUX
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.gru import GRU, GRUCell
from gatedrnn.layers.lstm import LSTM, LSTMCell
from gatedrnn.layers.parameters import BEYOND_RANGE, set_sum
from gatedrnn.layers.step import RecurrentStep

_Model = TypeVar("_Model", bound=nn.Module)
_Theirs = nn.LSTM | nn.GRU | nn.LSTMCell | nn.GRUCell
_Ours = RecurrentLayer | RecurrentStep
_KINDS: dict[type[nn.Module], type[_Ours]] = {nn.LSTM: LSTM, nn.GRU: GRU, nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell}

_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def convert(model: _Model, forget_gate: str | Gate, match: Literal["bias"] | None = None) -> _Model:
    """Give every recurrent layer inside a model the given forget gate; return the model.

    torch.nn's LSTM, GRU, LSTMCell and GRUCell are replaced by ours; layers and cells of this library are changed in
    place. The parameters stay the same objects, so that an optimiser keeps working; a module used in two places stays
    one module. If the model itself is such a layer, the new layer is returned. Buffers, submodules, parameters and
    attributes that were added to a layer are kept. A layer of torch.nn that is a subclass, is compiled itself, has
    hooks or parametrisations, or an added name with a different meaning here, raises an error that names it, and
    nothing is changed.

    Args:
        model: Any module.
        forget_gate: A name in ``gatedrnn.gates.GATES`` or a gate object.
        match: ``"bias"`` changes the forget biases so that each gate keeps its value at the bias, and each unit its
            time scale; recommended for trained models. ``None`` keeps the biases. Default: ``None``

    >>> model = torch.nn.Sequential(torch.nn.LSTM(2, 3))
    >>> gatedrnn.convert(model, forget_gate="fast")
    Sequential(
      (0): LSTM(2, 3, forget_gate=Fast())
    )
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"convert takes a torch.nn.Module, got {type(model).__name__}")
    gate = gates.resolve(forget_gate)
    if match not in (None, "bias"):
        raise ValueError(f'match must be None or "bias", got {match!r}')
    found = {name: module for name, module in model.named_modules() if isinstance(module, _Theirs)}
    gated = {n: m for n, m in model.named_modules() if isinstance(m, _Ours) and m.cell.takes_gate}
    own = {name: layer for name, layer in gated.items() if not _is_same(layer.forget_gate, gate)}
    replacements = {module: _without_parameters(module, gate) for module in found.values()}
    for name, module in found.items():
        _refuse(name or "the model", module, replacements[module], match)
    for name, layer in own.items():
        _refuse_own(name or "the model", layer, gate, match)
    for name, parent in model.named_modules():
        if type(parent).__name__ == "OptimizedModule" and not replacements.keys().isdisjoint(parent.children()):
            raise ValueError(f"{name or 'the model'}: is compiled and would run the old layer; convert, then compile")
    if not found and not gated:
        warnings.warn(
            f"{type(model).__name__} contains no recurrent layer with a gate: nothing was converted", stacklevel=2
        )
    for module, layer in replacements.items():
        _move(module, layer)
    before: dict[_Ours, Gate] = dict.fromkeys(replacements.values(), gates.Sigmoid())
    before.update({layer: layer.forget_gate for layer in own.values()})
    matched = None
    if match == "bias":  # all that may fail, before anything in the model is changed
        fixed = [layer for name, layer in gated.items() if name not in own]
        matched = _moved_biases(before, fixed), _bias_targets(before, gate)
    for layer in own.values():
        _change(layer, gate)
    if matched is not None and not _set_biases(before, *matched):
        warnings.warn(BEYOND_RANGE, stacklevel=2)
    for parent in [*model.modules(), *replacements.values()]:
        for name, child in parent._modules.items():
            if child in replacements:
                parent._modules[name] = replacements[child]
    return replacements.get(model, model)  # type: ignore[call-overload,no-any-return]


def with_weights_of(module: nn.Module) -> RecurrentLayer:
    """A layer of this library with the options and the values of the weights of torch.nn's LSTM or GRU; hooks,
    parametrisations and methods of a subclass are left out."""
    assert isinstance(module, nn.LSTM | nn.GRU)
    layer = _without_parameters(module, gates.Sigmoid())
    assert isinstance(layer, RecurrentLayer)
    for name in _weight_names(module):
        setattr(layer, name, nn.Parameter(getattr(module, name).detach(), requires_grad=False))
    return layer


def _is_same(a: Gate, b: Gate) -> bool:
    try:
        return a is b or bool(a == b)
    except (RuntimeError, ValueError):  # a field is a tensor or array of several values, which have no common truth
        return False


def _refuse(name: str, module: _Theirs, layer: _Ours, match: str | None) -> None:
    if parametrize.is_parametrized(module):
        raise ValueError(f"{name}: has a parametrisation; remove it, convert, and register it again")
    if type(module) not in _KINDS:
        raise ValueError(
            f"{name}: cannot convert {type(module).__name__}, a subclass of a layer of torch.nn; "
            "replace it by that layer first"
        )
    if module._compiled_call_impl is not None:
        raise ValueError(f"{name}: is compiled and would run the old layer; convert, then compile")
    for hooks in _HOOKS:
        if getattr(module, hooks):
            raise ValueError(f"{name}: has hooks ({hooks[1:]}); remove them, convert, and register them again")
    _refuse_computed(name, module, _weight_names(module))
    for added in [entry for entries in _added(module) for entry in entries]:
        if hasattr(layer, added):
            raise ValueError(
                f"{name}: its attribute {added!r} means something else in gatedrnn.{type(layer).__name__}; "
                "rename or remove it, then convert"
            )
    if match == "bias" and not module.bias:
        raise ValueError(f'{name}: was made with bias=False, so match="bias" has nothing to move')


def _refuse_own(name: str, layer: _Ours, gate: Gate, match: str | None) -> None:
    if gate.preactivations < layer.forget_gate.preactivations:
        raise ValueError(
            f"{name}: cannot change {layer.forget_gate!r} to {gate!r}, which has no auxiliary weights; make a new layer"
        )
    if match == "bias" or gate.preactivations > layer.forget_gate.preactivations:
        if parametrize.is_parametrized(layer):
            raise ValueError(f"{name}: has a parametrisation; remove it, convert, and register it again")
        _refuse_computed(name, layer, layer.weight_names())
    if match == "bias" and not layer.bias:
        raise ValueError(f'{name}: was made with bias=False, so match="bias" has nothing to move')


def _refuse_computed(name: str, module: nn.Module, weights: Sequence[str]) -> None:
    """Weights that are not parameters, such as those of a pruned layer."""
    for weight in weights:
        if module._parameters.get(weight) is None:
            raise ValueError(
                f"{name}: {weight} is not a parameter; make it one first (pruned layers: torch.nn.utils.prune.remove)"
            )


def _weight_names(module: _Theirs) -> list[str]:
    if isinstance(module, nn.RNNBase):
        return module._flat_weights_names
    return ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if module.bias else [])]


def _added(module: _Theirs) -> tuple[dict[str, Any], ...]:
    """What a user put on the layer: attributes, parameters, buffers and submodules."""
    own = vars(type(module)(1, 1, device="meta"))
    attributes = {name: value for name, value in vars(module).items() if name not in own}
    names = {"bias_ih", "bias_hh", *_weight_names(module)}  # a cell without biases has None in their place
    parameters = {name: p for name, p in module._parameters.items() if name not in names}
    return attributes, parameters, dict(module._buffers), dict(module._modules)


def _without_parameters(module: _Theirs, gate: Gate) -> _Ours:
    """The layer with the options of the module. Nothing is drawn: the parameters come from the module."""
    options = ["input_size", "hidden_size", "bias"]
    if isinstance(module, nn.RNNBase):
        options += ["num_layers", "batch_first", "dropout", "bidirectional"]
    if isinstance(module, nn.LSTM):
        options.append("proj_size")
    arguments = {name: getattr(module, name) for name in options}
    made: Any = next(ours for theirs, ours in _KINDS.items() if isinstance(module, theirs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the module has warned about its dropout already
        layer: _Ours = made(**arguments, device="meta", forget_gate=gate)
    return layer


def _change(layer: _Ours, gate: Gate) -> None:
    """Another gate for a layer of ours, in its place; an auxiliary gate gets weights of its own."""
    if gate.preactivations == layer.forget_gate.preactivations:
        layer.forget_gate = gate
        return
    like = next(layer.parameters())
    layer.add_auxiliary_gate(gate)
    _add_auxiliary(layer, like)


def _move(module: _Theirs, layer: _Ours) -> None:
    attributes, parameters, buffers, submodules = _added(module)
    for name in _weight_names(module):
        setattr(layer, name, getattr(module, name))
    if layer.forget_gate.preactivations > 1:
        _add_auxiliary(layer, next(module.parameters()))
    for name, parameter in parameters.items():
        layer.register_parameter(name, parameter)
    for name, buffer in buffers.items():
        layer.register_buffer(name, buffer, persistent=name not in module._non_persistent_buffers_set)
    for name, submodule in submodules.items():
        layer.add_module(name, submodule)
    vars(layer).update(attributes)
    layer.training = module.training


def _add_auxiliary(layer: _Ours, like: Tensor) -> None:
    """Draw the weights of the auxiliary gate, which the module did not have."""
    fresh = {}
    for name in layer.weight_names():  # a user's parameter may have any name
        if AUX in name:
            shape = getattr(layer, name).shape
            fresh[name] = nn.Parameter(torch.empty(shape, device=like.device, dtype=like.dtype))
            setattr(layer, name, fresh[name])
    layer.cell.reset(fresh, layer.forget_gate, layer.hidden_size)


def _bias_pairs(module: _Ours) -> list[tuple[int, ...]]:
    """Of each layer and direction, which parameters sum up to the forget bias."""
    first = [next(iter(module.cell.forget_biases(weights))) for weights in module.weights_by_layer().values()]
    return [tuple(id(bias if bias._base is None else bias._base) for bias in parts) for parts in first]


def _moved_biases(before: Mapping[_Ours, Gate], fixed: Sequence[_Ours]) -> list[int | None]:
    """For the forget bias of each layer and direction, which of the parameters that sum up to it is moved: one that is
    in no sum before; None if the sum was there before. ``before`` has the old gates; ``fixed`` layers keep theirs.

    Raises ValueError if there is none, because the parameters are shared between different sums or gates.
    """
    seen = {pair: layer.forget_gate for layer in fixed if layer.bias for pair in _bias_pairs(layer)}
    places: list[int | None] = []
    for module, gate in before.items():
        for pair in _bias_pairs(module):
            used = {bias for other in seen for bias in other}
            place = next((at for at, bias in enumerate(pair) if bias not in used), None)
            if place is None and (pair not in seen or not _is_same(seen[pair], gate)):
                raise ValueError(
                    'match="bias" cannot keep all time scales: layers share biases in different pairs or with '
                    "different gates"
                )
            places.append(place)
            seen[pair] = gate
    return places


@torch.no_grad()
def _bias_targets(before: Mapping[_Ours, Gate], gate: Gate) -> list[tuple[Tensor, ...]]:
    """For each layer and direction, the sums of the forget biases at which the gate has the value of the old one."""
    targets = []
    for layer, old in before.items():
        for weights in layer.weights_by_layer().values():
            own = list(layer.cell.forget_biases(weights))[: old.preactivations]
            sums = [torch.stack([bias.double() for bias in parts]).sum(0) for parts in own]
            logit = sums[0] if old == gates.Sigmoid() else -ForgetInit.input_bias(old, tuple(sums))
            targets.append(gate.from_logit(logit))
    return targets


@torch.no_grad()
def _set_biases(layers: Iterable[_Ours], places: Sequence[int | None], targets: Sequence[tuple[Tensor, ...]]) -> bool:
    """Move the forget biases of layers to the targets, each shared one once; whether all of them are in the range of
    their dtype."""
    biases = [
        list(layer.cell.forget_biases(weights)) for layer in layers for weights in layer.weights_by_layer().values()
    ]
    fitted = True
    for place, several, values in zip(places, biases, targets, strict=True):
        for index, (parts, target) in enumerate(zip(several, values, strict=True)):
            if place is not None or index:  # the auxiliary biases are new, and each layer's own
                at = place or 0
                fitted &= set_sum([*parts[at:], *parts[:at]], target, others_zero=False)
    return fitted
