"""Calls of the library with tensors: room for the results, the description of the scan, the call.

The operators of :mod:`gatedrnn.engines.cpu.ops` are these functions.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.checks import check_arguments, check_backward
from gatedrnn.engines.cpu.kernel import Kernel, parse
from gatedrnn.engines.operator import Options, Results

#: Bytes from which on a buffer comes from the library, as its own large ones do.
POOLED = 1 << 19

Room = Callable[[Tensor, Sequence[int]], Tensor]


def segment_length(steps: Any) -> int:
    """Steps between two checkpoints: the power of two next to √T, so that torch.compile needs only comparisons."""
    length = 8
    while length * length < steps:
        length *= 2
    return length


def _address(name: str, tensor: Tensor) -> int | None:
    address = tensor.data_ptr()
    if address == 0 and tensor.numel():
        raise RuntimeError(f"{name} has no memory: its storage was resized to 0 bytes")
    return address or None


class _Prepared(NamedTuple):
    """What all calls of a kernel for a dtype have in common."""

    kernel: Kernel
    #: The fields that depend on nothing else, to be copied.
    scan: library.Scan
    #: The positions of its weights in the structure.
    places: tuple[int, ...]
    #: What the fields point to.
    alive: tuple[Any, ...]


@lru_cache(maxsize=1024)
def _prepared(text: str, dtype: torch.dtype) -> _Prepared:
    facts, kernel, scan = library.FACTS, parse(text), library.Scan()
    scan.dtype = facts.dtypes.index(_name(dtype))
    scan.cell, scan.gate = list(facts.cells).index(kernel.cell), list(facts.gates).index(kernel.gate)
    scan.odds = math.exp(-kernel.beta)
    if kernel.memory:
        _, scan.heads, scan.relu = kernel.memory
    program = kernel.program.encode() or None
    scan.program = program
    numbers = (ctypes.c_double * len(kernel.coefficients))(*kernel.coefficients)
    if kernel.coefficients:
        scan.coefficient_count, scan.coefficients = len(numbers), ctypes.addressof(numbers)
    return _Prepared(kernel, scan, tuple(facts.weights.index(name) for name in kernel.weights), (program, numbers))


def _describe(
    prepared: _Prepared,
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    reverse: bool,
    recompute: bool,
    threads: int,
) -> tuple[library.Scan, list[Any]]:
    """The description of the scan for the library, and what must stay alive while it is used."""
    scan = library.Scan.from_buffer_copy(prepared.scan)
    scan.steps = len(input) if batch_sizes is None else len(batch_sizes)
    (scan.batch, scan.recurrent), scan.inputs, scan.hidden = state[0].shape, input.shape[-1], state[-1].shape[1]
    scan.reverse, scan.threads = reverse, threads
    if recompute:
        scan.segment = segment_length(scan.steps)
    scan.input_strides[:] = (0, *input.stride())[-3:]
    scan.input = _address("input", input)
    alive: list[Any] = []
    if batch_sizes is not None:
        starts = batch_sizes.cumsum(0) - batch_sizes
        lengths = (batch_sizes > torch.arange(scan.batch).unsqueeze(-1)).sum(-1)
        scan.starts = starts.data_ptr()
        alive.append(starts)
    if lengths is not None:
        lengths = lengths.contiguous()
        scan.lengths = _address("lengths", lengths)
        alive.append(lengths)
    room = scan.state
    for place, tensor in enumerate(state):
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
            alive.append(tensor)
        room[place] = tensor.data_ptr() or _address(f"state {place}", tensor)
    room = scan.weights
    for place, name, tensor in zip(prepared.places, prepared.kernel.weights, weights, strict=True):
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
            alive.append(tensor)
        room[place] = tensor.data_ptr() or _address(name, tensor)
    return scan, alive


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _kept_size(
    input: Tensor, state: Sequence[Tensor], batch_sizes: Tensor | None, kernel: Kernel, recompute: bool
) -> int:
    steps = input.shape[0] if batch_sizes is None else batch_sizes.shape[0]
    row = library.kept_row(_name(input.dtype), kernel.cell, kernel.gate, state[-1].shape[1], recompute, kernel.late)
    return row * state[0].shape[0] * (-(-steps // segment_length(steps)) if recompute else steps)


def _pooled(like: Tensor, shape: Sequence[int]) -> Tensor:
    """An empty tensor, from the library's pool if it is large."""
    size = math.prod(shape) * like.itemsize
    if size < POOLED:
        return like.new_empty(shape)
    flat = torch.frombuffer(library.take(size), dtype=like.dtype)
    # Not a view, which autograd would not let the user change.
    return like.new_empty(0).set_(flat.untyped_storage(), 0, tuple(shape))  # type: ignore[call-overload,no-any-return]


def _as(tensor: Tensor, room: Room) -> Tensor:
    """Room for a tensor like this one; empty_like is the quicker call where it is the same."""
    if room is _pooled and tensor.nbytes < POOLED and tensor.is_contiguous():
        return torch.empty_like(tensor)
    return room(tensor, tensor.shape)


def room_for_results(
    input: Tensor,
    state: Sequence[Tensor],
    batch_sizes: Tensor | None,
    kernel: Kernel,
    options: Options,
    room: Room = _pooled,
) -> Results:
    rows = input.shape[:-1]
    return Results(
        room(input, (*rows, state[0].shape[1])),
        [_as(s, room) for s in state],
        room(input, (*rows, state[-1].shape[1])) if options.collect else None,
        room(input, (_kept_size(input, state, batch_sizes, kernel, options.recompute),)) if options.keep else None,
        torch.get_num_threads(),
    )


def room_for_gradients(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    input_gradient: bool,
    room: Room = _pooled,
) -> list[Tensor]:
    """Room for the gradients of input (empty if not wanted), state and weights."""
    first = _as(input, room) if input_gradient else room(input, (0,))
    return [first, *(_as(tensor, room) for tensor in (*state, *weights))]


def run_forward(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    options: Options,
) -> Results:
    """One direction of one layer. With ``batch_sizes`` input, output and memory are packed: (N, features)."""
    check_arguments(parse(options.kernel), input, state, weights, lengths, batch_sizes)
    return run_known_forward(input, state, weights, lengths, batch_sizes, options)


def run_known_forward(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    options: Options,
) -> Results:
    """The same for arguments of a kind that was checked before."""
    kernel = parse(options.kernel)
    results = room_for_results(input, state, batch_sizes, kernel, options)
    output, finals, memory, kept, threads = results
    if output.numel() == 0:
        for final, first in zip(finals, state, strict=True):
            final.copy_(first)
        return results
    described, _alive = _describe(
        _prepared(options.kernel, input.dtype), input, state, weights, lengths, batch_sizes,
        options.reverse, options.recompute, threads,
    )  # fmt: skip
    described.output = output.data_ptr()
    if kept is not None:
        described.kept_size, described.kept = kept.numel(), kept.data_ptr() or None
    if memory is not None:
        described.cells = memory.data_ptr()
    places = described.final_state
    for place, final in enumerate(finals):
        places[place] = final.data_ptr()
    library.forward(described)
    return results


def run_backward(
    gradients: Sequence[Tensor | None],
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    output: Tensor,
    kept: Tensor,
    threads: int,
    kernel: str,
    reverse: bool,
    recompute: bool,
    input_gradient: bool,
) -> list[Tensor]:
    """The gradients of input (empty unless ``input_gradient``), state and weights, given those of output, the final
    states and the memory of every step, None where there is none."""
    parsed = parse(kernel)
    check_arguments(parsed, input, state, weights, lengths, batch_sizes)
    rows = input.shape[:-1]
    shapes: dict[str, Sequence[int]] = {"output": (*rows, state[0].shape[1]), "h_n": state[0].shape}
    if len(state) > 1:
        shapes["c_n"] = state[1].shape
    shapes["cells"] = (*rows, state[-1].shape[1]) if len(state) > 1 else (0,) * input.dim()
    if len(gradients) != len(shapes):
        raise RuntimeError(f"gradients are those of {', '.join(shapes)}, got {len(gradients)}")
    kept_size = _kept_size(input, state, batch_sizes, parsed, recompute)
    check_backward(dict(zip(shapes, gradients, strict=False)), output, kept, input.dtype, shapes, kept_size)
    results = room_for_gradients(input, state, weights, input_gradient)
    of_input, of_state, of_weights = results[0], results[1 : 1 + len(state)], results[1 + len(state) :]
    if output.numel() == 0:
        for gradient in results:
            gradient.zero_()
        for gradient, given in zip(of_state, gradients[1:], strict=False):
            if given is not None:
                gradient.copy_(given)
        return results
    prepared = _prepared(kernel, input.dtype)
    described, alive = _describe(prepared, input, state, weights, lengths, batch_sizes, reverse, recompute, threads)
    output, kept = output.contiguous(), kept.contiguous()
    described.kept_size, described.kept = kept.numel(), _address("kept", kept)
    described.output = _address("output", output)
    for place, (name, given) in enumerate(zip(shapes, gradients, strict=False)):
        if given is None or not given.numel():
            continue
        strided = name in ("output", "cells")  # only the features must be contiguous
        solid = given if strided and given.stride(-1) == 1 else given.contiguous()
        address = _address(f"grad_{name}", solid)
        if strided:
            getattr(described, f"grad_{name}_strides")[:] = (0, *solid.stride())[-3:-1]
            setattr(described, f"grad_{name}", address)
        else:
            described.grad_final_state[place - 1] = address
        alive.append(solid)  # until the library has read it
    described.grad_input = of_input.data_ptr() or None
    places = described.grad_state
    for place, gradient in enumerate(of_state):
        places[place] = gradient.data_ptr()
    places = described.grad_weights
    for place, gradient in zip(prepared.places, of_weights, strict=True):
        places[place] = gradient.data_ptr() or None
    library.backward(described)
    return results


#: Elements of a zero state that is kept for the next call.
_KEPT_ZEROS = 4096


class Repeated:
    """Forward scans without gradients, of tensors of the same kind as those given: only their addresses are new."""

    def __init__(
        self, text: str, input: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor], reverse: bool
    ) -> None:
        self._prepared = _prepared(text, input.dtype)
        check_arguments(self._prepared.kernel, input, state, weights, None, None)
        self._scan, _ = _describe(self._prepared, input, state, weights, None, None, reverse, False, 1)
        self._output = (*input.shape[:-1], state[0].shape[-1])
        self._shapes = [s.shape for s in state]
        # Only read. Large ones are not kept: there may be a thousand calls like this, of different sizes.
        small = all(s.numel() <= _KEPT_ZEROS for s in state)
        self._zeros = self._zero_states(input) if small else None

    def __call__(
        self, input: Tensor, state: Sequence[Tensor], weights: Iterable[Tensor]
    ) -> tuple[Tensor | None, tuple[Tensor, ...]]:
        scan = library.Scan.from_buffer_copy(self._scan)
        scan.threads = torch.get_num_threads()
        strides = input.stride()
        if not state:
            zeros = self._zero_states(input) if self._zeros is None else self._zeros
            state = zeros if len(strides) == 2 else [zero.unsqueeze(0) for zero in zeros]
        scan.input_strides[:] = strides if len(strides) == 3 else (0, *strides)
        scan.input = _address("input", input)
        alive = []
        for room, places, tensors in ((scan.state, (0, 1), state), (scan.weights, self._prepared.places, weights)):
            for place, tensor in zip(places, tensors):  # noqa: B905 - there may be one state
                if not tensor.is_contiguous():
                    tensor = tensor.contiguous()
                    alive.append(tensor)
                room[place] = tensor.data_ptr() or _address("a state or weight", tensor)
        finals = []
        room = scan.final_state
        for place, tensor in enumerate(state):
            final = torch.empty_like(tensor, memory_format=torch.contiguous_format)
            room[place] = final.data_ptr()
            finals.append(final)
        if len(strides) == 2:
            output, scan.output = None, finals[0].data_ptr()  # the one step writes the same there
        else:
            output = _pooled(input, self._output)
            scan.output = output.data_ptr()
        library.forward(scan)
        return output, tuple(finals)

    def _zero_states(self, input: Tensor) -> list[Tensor]:
        return [torch.zeros(shape, dtype=input.dtype) for shape in self._shapes]
