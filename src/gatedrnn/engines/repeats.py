"""Calls like one before.

In streaming inference, the questions that are asked of every call take longer than the call itself. They are about the
kind of its tensors and never about their values, so the answers hold for a call whose tensors are of the same kind.
Nothing else is remembered: the memory of every tensor is read anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from gatedrnn.cells import Cell
from gatedrnn.engines.interface import Engine, Repeat
from gatedrnn.engines.operator import all_plain, watched
from gatedrnn.gates import GATES, Gate

_BUILT_IN = frozenset(GATES.values())
#: Kinds of calls that are remembered.
_REMEMBERED = 1024

_known: dict[tuple[Engine, tuple[Any, ...]], Repeat] = {}


def kind_of(
    cell: Cell,
    gate: Gate,
    options: tuple[Hashable, ...],
    input: object,
    state: Sequence[object],
    weights: Iterable[object],
) -> tuple[Any, ...] | None:
    """All that the checks and the choice of an engine depend on.

    None where they ask for more: gradients are recorded, somebody looks on, a tensor is not plain, the gate is not one
    of the library.
    """
    if torch.is_grad_enabled() or watched() or type(gate) not in _BUILT_IN:
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0:
        return None
    tensors, shapes, dtype = (input, *state, *weights), [], None
    for tensor in tensors:
        if type(tensor) is not Parameter and type(tensor) is not Tensor:
            return None
        dtype = dtype or tensor.dtype
        if tensor.dtype is not dtype:
            return None
        shapes.append(tensor.shape)
    return (cell, gate, dtype, options, *shapes) if all_plain(tensors) else None  # type: ignore[arg-type]


def recall(engine: Engine, kind: tuple[Any, ...]) -> Repeat | None:
    """How the engine ran a call of this kind, if it did."""
    return _known.get((engine, kind))


def remember(engine: Engine, kind: tuple[Any, ...], repeat: Repeat) -> None:
    if len(_known) >= _REMEMBERED:
        _known.clear()
    _known[engine, kind] = repeat
