"""Calls like one before.

In steps that are taken one by one, the questions that are asked of every call take longer than the call itself. They
are about the kind of its tensors and never about their values, so the answers hold for a call whose tensors are of the
same kind.
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
_TYPES = frozenset({Tensor, Parameter})
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

    None where they ask for more: somebody looks on, a tensor is not plain, the gate is not one of the library.
    """
    if watched() or type(gate) not in _BUILT_IN:
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0:
        return None
    # Lists, not generators: all of this is as long as a step.
    tensors: tuple[Any, ...] = (input, *state, *weights)
    if not _TYPES.issuperset(map(type, tensors)) or not all_plain(tensors):
        return None
    dtype = tensors[0].dtype
    if any([t.dtype is not dtype for t in tensors]):  # noqa: C419
        return None
    recorded = torch.is_grad_enabled() and any([t.requires_grad for t in tensors])  # noqa: C419
    return cell, gate, dtype, recorded, options, *[t.shape for t in tensors]


def recall(engine: Engine, kind: tuple[Any, ...]) -> Repeat | None:
    """How the engine ran a call of this kind, if it did."""
    return _known.get((engine, kind))


def remember(engine: Engine, kind: tuple[Any, ...], repeat: Repeat) -> None:
    if len(_known) >= _REMEMBERED:
        _known.clear()
    _known[engine, kind] = repeat
