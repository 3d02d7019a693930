"""torch.export in two forms: with gatedrnn's operator, or of plain operations that need nothing but torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, ShapesCollection
from torch.utils._pytree import tree_leaves

from gatedrnn.engines import Engine
from gatedrnn.export.example import distinct
from gatedrnn.layers.module import RecurrentModule


def program(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    plain: bool = False,
) -> ExportedProgram:
    """Export a model for inference: ``torch.export.export`` with dynamic sizes, in one of two forms.

    Args:
        model: Any module; call its ``eval()`` first, unless the program should apply dropout.
        args: An example of its arguments. Sizes that the model does not fix, such as the batch and the number of steps,
            are dynamic, except sizes of 1.
        kwargs: An example of its keyword arguments.
        dynamic_shapes: As in ``torch.export.export``, to choose the dynamic sizes.
        plain: If ``False``, the layers become gatedrnn's operator wherever a native kernel exists: fast, but needs
            ``import gatedrnn`` before ``torch.export.load``. If ``True``, they become plain operations: the program
            needs only torch.

    A module that cannot be exported is named in the error.

    >>> model = gatedrnn.LSTM(2, 3, forget_gate="fast").eval()
    >>> exported = gatedrnn.export.program(model, (torch.randn(5, 4, 2),))
    >>> with torch.no_grad():
    ...     output, state = exported.module()(torch.randn(100, 7, 2))
    >>> output.shape
    torch.Size([100, 7, 3])
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"program takes a torch.nn.Module, got {type(model).__name__}")
    if not isinstance(args, tuple):
        raise TypeError(f"args must be a tuple of the model's arguments, got {type(args).__name__}")
    args, given = distinct((args, dict(kwargs or {})))
    if dynamic_shapes is None:
        dynamic_shapes = ShapesCollection()
        for tensor in tree_leaves((args, given)):
            if isinstance(tensor, Tensor):
                dynamic_shapes[tensor] = (Dim.AUTO,) * tensor.dim()
    layers = {name: module for name, module in model.named_modules() if isinstance(module, RecurrentModule)}
    shown = {name: f"{name or 'the model'}: {layer}" for name, layer in layers.items()}
    with ExitStack() as stack:
        running = stack.enter_context(_watched(layers))
        # The reference engine is a Python loop: its program would have the number of steps of the example.
        stack.enter_context(_as_graph([x for x in layers.values() if plain or _name(x.engine) == "reference"]))
        try:
            with torch.no_grad():
                return torch.export.export(model, args, given, dynamic_shapes=dynamic_shapes)
        except Exception as error:
            if not running:
                raise
            reason = str(error).strip().split("\n")[0]
            raise RuntimeError(f"{shown[running[-1]]} cannot be exported: {reason}") from error


@contextmanager
def _watched(layers: Mapping[str, RecurrentModule]) -> Iterator[list[str]]:
    """The names of the layers that were entered and not left."""
    running: list[str] = []
    with ExitStack() as stack:
        for name, layer in layers.items():
            stack.callback(layer.register_forward_pre_hook(lambda *_, name=name: running.append(name)).remove)
            stack.callback(layer.register_forward_hook(lambda *_: (running.pop(), None)[1]).remove)
        yield running


def _name(engine: str | Engine) -> str:
    return engine if isinstance(engine, str) else engine.name


@contextmanager
def _as_graph(layers: Iterable[RecurrentModule]) -> Iterator[None]:
    before = [(layer, layer.engine) for layer in layers]
    try:
        for layer, _ in before:
            layer.engine = "graph"
        yield
    finally:
        for layer, engine in before:
            layer.engine = engine
