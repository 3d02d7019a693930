"""Recurrent layers out of weight files that say nothing about themselves."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gatedrnn import layers


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of one that torch.save wrote; nothing in it is run.

    Tensors in dictionaries inside dictionaries get dotted names. Raises ValueError for anything else.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError) as wrong:
        raise ValueError(f"{path} cannot be read as weights: {str(wrong).splitlines()[0]}") from None
    return dict(_flat(content, ""))


def layers_in(
    tensors: Mapping[str, Tensor], cell: str, tied: bool | None, forget_gate: str
) -> dict[str, layers.RecurrentLayer]:
    """The recurrent layers of this cell among the tensors, by the beginning of their names ("" or "encoder.rnn").

    Raises ValueError if there is none, or if the sizes are not those of such a cell.
    """
    pattern = _layer(cell, tied, forget_gate, 1, 1)
    wanted = [name for name in pattern.state_dict() if not name.startswith(("bias", "b_"))]
    first, recurrent = wanted[0], f"{pattern.cell.recurrent_weights()[0]}_l0"
    found = {}
    for prefix in [name.removesuffix(first) for name in tensors if name.endswith(first)]:
        if (prefix and not prefix.endswith(".")) or not all(prefix + name in tensors for name in wanted):
            continue
        own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        input_size = own[first].shape[1]
        hidden_size = own[recurrent].shape[0] // pattern.state_dict()[recurrent].shape[0]
        layer = _matching(own, cell, tied, forget_gate, input_size, hidden_size)
        found[prefix.removesuffix(".")] = layer
    if not found:
        raise ValueError(f"no weights of a layer with the cell {cell} and the gate {forget_gate}: {', '.join(wanted)}")
    return found


def _matching(
    own: dict[str, Tensor], cell: str, tied: bool | None, forget_gate: str, input_size: int, hidden_size: int
) -> layers.RecurrentLayer:
    recurrent = {name for name in own if "." not in name}
    depth = 1
    while any(name.endswith(f"_l{depth}") for name in recurrent):
        depth += 1
    options: dict[str, Any] = {
        "num_layers": depth,
        "bidirectional": any(name.endswith("_l0_reverse") for name in recurrent),
        "bias": any(name.startswith(("bias", "b_")) for name in recurrent),
    }
    if cell == "lstm" and "weight_hr_l0" in own:
        options["proj_size"] = own["weight_hr_l0"].shape[0]
    try:
        layer = _layer(cell, tied, forget_gate, input_size, hidden_size, **options)
        layer.load_state_dict({name: own[name] for name in recurrent if name in layer.state_dict()})
    except (RuntimeError, ValueError):
        sizes = ", ".join(f"{name} {tuple(own[name].shape)}" for name in sorted(recurrent) if name.endswith("_l0"))
        kind = "" if cell != "lstm" else "tied " if tied else "untied "
        raise ValueError(f"these are not the sizes of a {kind}{cell} with the gate {forget_gate}: {sizes}") from None
    return layer


def _layer(
    cell: str, tied: bool | None, forget_gate: str, input_size: int, hidden_size: int, **options: Any
) -> layers.RecurrentLayer:
    if cell == "lstm":
        options["tied"] = bool(tied)
    kind: Any = layers.LAYERS[cell]
    layer: layers.RecurrentLayer = kind(input_size, hidden_size, forget_gate=forget_gate, **options)
    return layer


def _flat(content: Any, prefix: str) -> Any:
    if isinstance(content, Tensor):
        yield prefix.removesuffix("."), content
    elif isinstance(content, Mapping):
        for name, item in content.items():
            yield from _flat(item, f"{prefix}{name}.")
