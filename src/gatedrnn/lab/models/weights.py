"""Weights as safetensors, with a note of what model they belong to."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from gatedrnn.lab.fields import made, plain
from gatedrnn.lab.models.base import ModelOptions, Network, Sizes
from gatedrnn.lab.models.foreign import filled
from gatedrnn.lab.models.options import Model
from gatedrnn.lab.models.registry import MODELS

SCHEMA = 1
# One entry, because safetensors keeps no order among several: the same weights are then the same bytes.
_ENTRY = "gatedrnn"
_LARGEST = 10**9  # of a size in the note


def weights_bytes(network: Network, model: ModelOptions) -> bytes:
    """The network as the content of a safetensors file that says what model it is."""
    note = {"schema": SCHEMA, "kind": model.kind, "model": plain(model), **dataclasses.asdict(network.sizes)}
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
        raise ValueError(f"{path}: damaged model metadata: {wrong}") from None
    if not isinstance(note, dict):
        raise ValueError(f"{path}: damaged model metadata: not a JSON object")
    if note.get("schema") != SCHEMA:
        raise ValueError(f"{path}: written in version {note.get('schema')!r}; this gatedrnn reads version {SCHEMA}")
    for name in ("input_size", "output_size", "last"):
        if name == "last" and note.get(name, 0) is None:  # the head reads all steps
            continue
        if type(note.get(name)) is not int or not 1 <= note[name] <= _LARGEST:
            raise ValueError(f"{path}: damaged model metadata: {name} is {note.get(name)!r}")
    return note


def load(path: Path) -> tuple[Network, ModelOptions]:
    """The network of a file that :func:`weights_bytes` made.

    Raises ValueError for a file that does not name its model, a damaged note, and weights of another model.
    """
    note = read_note(path)
    if note is None:
        raise ValueError(f"{path} does not name its model")
    try:
        model: ModelOptions = made(MODELS[note.get("kind", Model.kind)], note["model"])
        model.check()
    except (KeyError, TypeError, AttributeError, ValueError) as wrong:
        raise ValueError(f"{path}: damaged model metadata: {wrong}") from None
    # t_max matters for freshly drawn weights only; files of the first version do not have it.
    network = model.build(Sizes(note["input_size"], note["output_size"], note["last"], t_max=3.0), device="meta")
    try:
        filled(network, load_file(path))
    except ValueError as wrong:
        raise ValueError(f"{path}: its weights are not those of its model: {wrong}") from None
    return network, model
