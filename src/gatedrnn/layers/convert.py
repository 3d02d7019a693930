"""convert: give the recurrent layers of an existing model another forget gate."""

from __future__ import annotations

import warnings
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from gatedrnn import gates
from gatedrnn.cells.base import AUX
from gatedrnn.gates import Gate
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.gru import GRU
from gatedrnn.layers.lstm import LSTM

_Model = TypeVar("_Model", bound=nn.Module)

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
    """Swap every torch.nn.LSTM and GRU inside a model for ours with the given forget gate; return the model.

    The parameters stay the same objects, so that an optimiser goes on working; a module used in two places stays
    one module. If the model itself is such a layer, the new layer is returned. Buffers, submodules, parameters and
    attributes that were added to a layer move with it. A layer that is a subclass, has hooks or parametrisations, or an
    added name that means something else here, is refused by name, and then nothing is changed.

    Args:
        model: Any module.
        forget_gate: A name in ``gatedrnn.gates.GATES`` or a gate object.
        match: ``"bias"`` moves the forget biases so that φ(b′) = σ(b): each unit keeps its time scale.

    >>> model = torch.nn.Sequential(torch.nn.LSTM(2, 3))
    >>> gatedrnn.convert(model, forget_gate="fast")
    Sequential(
      (0): LSTM(2, 3, forget_gate=Fast())
    )
    """
    gate = gates.resolve(forget_gate)
    if match not in (None, "bias"):
        raise ValueError(f'match must be None or "bias", got {match!r}')
    found = {name: module for name, module in model.named_modules() if isinstance(module, nn.LSTM | nn.GRU)}
    replacements = {module: _without_parameters(module, gate) for module in found.values()}
    for name, module in found.items():
        _refuse(name or "the model", module, replacements[module], match)
    if not found:
        warnings.warn(f"{type(model).__name__} holds no torch.nn.LSTM or GRU: nothing was converted", stacklevel=2)
    for module, layer in replacements.items():
        _move(module, layer)
    if match == "bias":
        moved: set[int] = set()
        for layer in replacements.values():
            _match_biases(layer, moved)
    for parent in [*model.modules(), *replacements.values()]:
        for name, child in parent._modules.items():
            if child in replacements:
                parent._modules[name] = replacements[child]
    return replacements.get(model, model)  # type: ignore[call-overload,no-any-return]


def _refuse(name: str, module: nn.LSTM | nn.GRU, layer: RecurrentLayer, match: str | None) -> None:
    if parametrize.is_parametrized(module):
        raise ValueError(f"{name}: has a parametrisation; remove it, convert, and register it again")
    if type(module) not in (nn.LSTM, nn.GRU):
        raise ValueError(f"{name}: {type(module).__name__} is a subclass whose changes would be lost")
    for hooks in _HOOKS:
        if getattr(module, hooks):
            raise ValueError(f"{name}: has hooks ({hooks[1:]}); remove them, convert, and register them again")
    for weight in module._flat_weights_names:
        if module._parameters.get(weight) is None:
            raise ValueError(f"{name}: its {weight} is not a parameter; make it one, and convert")
    for added in [entry for entries in _added(module) for entry in entries]:
        if hasattr(layer, added):
            raise ValueError(
                f"{name}: its attribute {added!r} means something else in gatedrnn.{type(layer).__name__}; "
                "remove it, convert, and find another name for it"
            )
    if match == "bias" and not module.bias:
        raise ValueError(f'{name}: was made with bias=False, so match="bias" has nothing to move')


def _added(module: nn.LSTM | nn.GRU) -> tuple[dict[str, Any], ...]:
    """What a user put on the layer: attributes, parameters, buffers and submodules."""
    own = vars(type(module)(1, 1, device="meta"))
    attributes = {name: value for name, value in vars(module).items() if name not in own}
    parameters = {name: p for name, p in module._parameters.items() if name not in module._flat_weights_names}
    return attributes, parameters, dict(module._buffers), dict(module._modules)


def _without_parameters(module: nn.LSTM | nn.GRU, gate: Gate) -> RecurrentLayer:
    """The layer with the options of the module. Nothing is drawn: the parameters come from the module."""
    arguments: dict[str, Any] = {
        "input_size": module.input_size,
        "hidden_size": module.hidden_size,
        "num_layers": module.num_layers,
        "bias": module.bias,
        "batch_first": module.batch_first,
        "dropout": module.dropout,
        "bidirectional": module.bidirectional,
        "device": "meta",
        "forget_gate": gate,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the module has warned about its dropout already
        is_lstm = isinstance(module, nn.LSTM)
        return LSTM(**arguments, proj_size=module.proj_size) if is_lstm else GRU(**arguments)


def _move(module: nn.LSTM | nn.GRU, layer: RecurrentLayer) -> None:
    attributes, parameters, buffers, submodules = _added(module)
    for name in module._flat_weights_names:
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


def _add_auxiliary(layer: RecurrentLayer, like: Tensor) -> None:
    """Draw the weights of the auxiliary gate, which the module did not have."""
    fresh = {}
    for name, parameter in list(layer.named_parameters()):
        if AUX in name:
            fresh[name] = nn.Parameter(torch.empty_like(parameter, device=like.device, dtype=like.dtype))
            setattr(layer, name, fresh[name])
    layer.cell.reset(fresh, layer.forget_gate, layer.hidden_size)


def _match_biases(layer: RecurrentLayer, moved: set[int]) -> None:
    """Move the forget biases, each shared one once."""
    for weights in layer.weights_by_layer().values():
        if id(weights["bias_ih"]) in moved:
            continue
        moved.add(id(weights["bias_ih"]))
        with torch.no_grad():
            biases = list(layer.cell.forget_biases(weights))
            logit = torch.stack([bias.double() for bias in biases[0]]).sum(0)
            for (first, second), target in zip(biases, layer.forget_gate.from_logit(logit), strict=True):
                first.copy_(target - second.double())
