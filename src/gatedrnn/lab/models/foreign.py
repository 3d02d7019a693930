"""Recurrent layers from weight files without a description of their model."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from gatedrnn import layers
from gatedrnn.layers.module import ENTRY

_Module = TypeVar("_Module", bound=nn.Module)
_OF_A_LAYER = re.compile(r"_l\d+(_reverse)?$")
# Of nested dictionaries: more would not be a file of weights, or one that contains itself.
_MOST_LEVELS = 50
_MOST_ENTRIES = 100_000


class Weights(NamedTuple):
    """The content of a file of weights."""

    tensors: dict[str, Tensor]
    #: What layers of this library were trained with, by the beginning of their names, where the file says it.
    entries: dict[str, Mapping[str, Any]]


def read_weights(path: Path) -> Weights:
    """The tensors of a safetensors file, or of one that torch.save wrote; nothing in it is run.

    Tensors in dictionaries inside dictionaries get dotted names. Raises ValueError for anything else.
    """
    try:
        if path.suffix == ".safetensors":
            return Weights(load_file(path), {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the kind of file; the error below has the reason
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as wrong:  # a damaged file can make the reader raise any exception
        raise ValueError(f"{path} cannot be read as weights: {_reason(wrong)}") from None
    try:
        return _named(content)
    except ValueError as wrong:
        raise ValueError(f"{path} cannot be read as weights: {wrong}") from None


def layers_in(weights: Weights, cell: str, tied: bool | None, forget_gate: str) -> dict[str, layers.RecurrentLayer]:
    """The recurrent layers of this cell among the weights, by the beginning of their names ("" or "encoder.rnn").

    Raises ValueError if there is none, if the sizes are not those of such a cell, or if the file names another gate.
    """
    tensors = weights.tensors
    pattern = _layer(cell, tied, forget_gate, 1, 1)
    shapes = {name: tensor.shape for name, tensor in pattern.state_dict().items()}
    wanted = [name for name in shapes if not name.startswith(("bias", "b_"))]
    first, recurrent = wanted[0], f"{pattern.cell.recurrent_weights()[0]}_l0"
    found = {}
    for prefix in [name.removesuffix(first) for name in tensors if name.endswith(first)]:
        if (prefix and not prefix.endswith(".")) or not all(prefix + name in tensors for name in wanted):
            continue
        own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        own = {name: tensor for name, tensor in own.items() if "." not in name}
        try:
            if own[first].dim() != 2 or own[recurrent].dim() != 2:
                raise ValueError(f"{first} and {recurrent} must be matrices")
            hidden_size = own[recurrent].shape[0] // shapes[recurrent][0]
            options = _options(own, cell)
            layer = filled(_layer(cell, tied, forget_gate, own[first].shape[1], hidden_size, **options), own)
            _check_gate(layer, own, weights.entries.get(prefix.removesuffix("."), {}))
        except ValueError as wrong:
            kind = "a" if cell != "lstm" else "a tied" if tied else "an untied"
            given = "--cell, --forget-gate and --tied" if cell == "lstm" else "--cell and --forget-gate"
            sizes = ", ".join(f"{name} {tuple(own[name].shape)}" for name in sorted(own) if name.endswith("_l0"))
            raise ValueError(
                f"the weights do not match {kind} {cell} with the gate {forget_gate} ({wrong}); "
                f"check {given}; found {sizes}"
            ) from None
        found[prefix.removesuffix(".")] = layer
    if not found:
        raise ValueError(
            f"found no layer with the cell {cell} and the gate {forget_gate}; expected weights named "
            f"{', '.join(wanted)}"
        )
    return found


def filled(module: _Module, tensors: Mapping[str, Tensor]) -> _Module:
    """The module, which was made on the meta device, with the tensors of its parameters' names; others are left out.

    Raises ValueError for one that is missing, of another shape, or not of numbers. Nothing is allocated before: a small
    file can claim any size.
    """
    own = {}
    for name, parameter in module.state_dict().items():
        if name not in tensors:
            raise ValueError(f"{name} is missing")
        tensor = own[name] = tensors[name]
        if tensor.shape != parameter.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(parameter.shape)}")
        if not (tensor.is_floating_point() and tensor.layout == torch.strided and tensor.device.type == "cpu"):
            raise ValueError(f"{name} is not an array of floating-point numbers")
    module.load_state_dict(own, assign=True)
    return module


def _check_gate(layer: layers.RecurrentLayer, own: Mapping[str, Tensor], entry: Mapping[str, Any]) -> None:
    for option, value in layer.state_dict_entry().items():
        if entry.get(option, value) != value:
            raise ValueError(f"saved with {option}={entry[option]}")
    names = layer.state_dict().keys()
    if more := next((name for name in own if _OF_A_LAYER.search(name) and name not in names), None):
        raise ValueError(f"unexpected weight {more}")


def _options(own: Mapping[str, Tensor], cell: str) -> dict[str, Any]:
    depth = 1
    while any(name.endswith(f"_l{depth}") for name in own):
        depth += 1
    options: dict[str, Any] = {
        "num_layers": depth,
        "bidirectional": any(name.endswith("_l0_reverse") for name in own),
        "bias": any(name.startswith(("bias", "b_")) for name in own),
    }
    if cell == "lstm" and "weight_hr_l0" in own:
        options["proj_size"] = len(own["weight_hr_l0"]) if own["weight_hr_l0"].dim() else 0
    return options


def _layer(
    cell: str, tied: bool | None, forget_gate: str, input_size: int, hidden_size: int, **options: Any
) -> layers.RecurrentLayer:
    if cell == "lstm":
        options["tied"] = bool(tied)
    kind: Any = layers.LAYERS[cell]
    layer: layers.RecurrentLayer = kind(input_size, hidden_size, forget_gate=forget_gate, device="meta", **options)
    return layer


def _reason(wrong: Exception) -> str:
    """One line. torch's own advice, to load the file with weights_only=False, would run what is in it."""
    if isinstance(wrong, pickle.UnpicklingError) or "weights_only" in str(wrong):
        return "it holds more than tensors and plain values, or is damaged; nothing in it was run"
    first, *_ = str(wrong).splitlines() or [""]
    return first[:200] or type(wrong).__name__


def _named(content: Any) -> Weights:
    """The tensors by their dotted names."""
    found: dict[str, Tensor] = {}
    entries_of: dict[str, Mapping[str, Any]] = {}
    entries, waiting = 0, [("", 0, content)]
    while waiting:
        name, level, item = waiting.pop()
        entries += 1
        if level > _MOST_LEVELS or entries > _MOST_ENTRIES:
            raise ValueError(f"it has more than {_MOST_LEVELS} levels or {_MOST_ENTRIES} entries, or contains itself")
        if isinstance(item, Tensor):
            if name in found:
                raise ValueError(f"two tensors have the name {name}")
            found[name] = item
        elif isinstance(item, Mapping):
            told = getattr(item, "_metadata", {})
            for module, metadata in told.items() if isinstance(told, Mapping) else ():
                entry = metadata.get(ENTRY) if isinstance(metadata, Mapping) else None
                if isinstance(entry, Mapping):
                    entries_of[f"{name}.{module}".strip(".")] = entry
            parts = [(f"{name}.{key}" if level else str(key), level + 1, value) for key, value in item.items()]
            waiting += reversed(parts)
    return Weights(found, entries_of)
