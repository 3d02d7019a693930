"""Weights as safetensors, with a note of what model they belong to."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from gatedrnn.lab.models.foreign import filled
from gatedrnn.lab.models.network import Network, build
from gatedrnn.lab.models.options import Model
from gatedrnn.layers import RecurrentLayer

SCHEMA = 1
# One entry, because safetensors keeps no order among several: the same weights are then the same bytes.
_ENTRY = "gatedrnn"
_LARGEST = 10**9  # of a size in the note


def weights_bytes(network: Network, model: Model) -> bytes:
    """The network as the content of a safetensors file that says what model it is."""
    note = {
        "schema": SCHEMA,
        "model": dataclasses.asdict(model),
        "input_size": network.layer.input_size,
        "output_size": network.head.out_features,
        "last": network.last,
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    return save(tensors, metadata={_ENTRY: json.dumps(note)})


def read_note(path: Path) -> dict[str, Any] | None:
    """What the file says about its model; None for the file of somebody else.

    Raises ValueError for a file that is no safetensors file, for a damaged note, and for one of a version that is not
    known here.
    """
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(_ENTRY)
    except SafetensorError as wrong:
        raise ValueError(f"{path} is not a safetensors file: {wrong}") from None
    if text is None:
        return None
    try:
        note = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path}: its note about the model is damaged: {wrong}") from None
    if not isinstance(note, dict):
        raise ValueError(f"{path}: its note about the model is damaged: it holds no JSON object")
    if note.get("schema") != SCHEMA:
        raise ValueError(f"{path}: written in version {note.get('schema')!r}; this gatedrnn reads version {SCHEMA}")
    for name in ("input_size", "output_size", "last"):
        if type(note.get(name)) is not int or not 1 <= note[name] <= _LARGEST:
            raise ValueError(f"{path}: its note about the model is damaged: {name} is {note.get(name)!r}")
    return note


def load(path: Path) -> tuple[Network, Model]:
    """The network of a file that :func:`weights_bytes` made."""
    note, model, _, tensors = _read(path)
    network = build(model, note["input_size"], note["output_size"], note["last"], t_max=3.0)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as wrong:
        raise ValueError(f"{path}: its weights are not those of its model: {' '.join(str(wrong).split())}") from None
    return network, model


def load_layer(path: Path) -> tuple[RecurrentLayer, Model]:
    """The recurrent layer alone."""
    _, model, layer, _ = _read(path)
    return layer, model


def _read(path: Path) -> tuple[dict[str, Any], Model, RecurrentLayer, dict[str, Tensor]]:
    note = read_note(path)
    if note is None:
        raise ValueError(f"{path} does not name its model")
    try:
        model = Model(**note["model"])
        model.check()
    except (KeyError, TypeError, ValueError) as wrong:
        raise ValueError(f"{path}: its note about the model is damaged: {wrong}") from None
    tensors = load_file(path)
    own = {name.removeprefix("layer."): tensor for name, tensor in tensors.items() if name.startswith("layer.")}
    try:
        layer = filled(model.layer(note["input_size"], t_max=3.0, device="meta"), own)
    except ValueError as wrong:
        raise ValueError(f"{path}: its weights are not those of its model: {wrong}") from None
    return note, model, layer, tensors
