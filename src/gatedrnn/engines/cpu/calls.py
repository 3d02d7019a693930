"""Calls of the library with tensors: room for the results, the description of the scan, the call.

The operators of :mod:`gatedrnn.engines.cpu.ops` are these functions.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.checks import check_arguments, check_backward
from gatedrnn.engines.cpu.kernel import Kernel, parse

#: Bytes from which on a buffer comes from the library, as its own large ones do.
POOLED = 4 << 20

Room = Callable[[Tensor, Sequence[int]], Tensor]


def segment_length(steps: Any) -> int:
    """Steps between two checkpoints: the power of two next to √T, so that torch.compile needs only comparisons."""
    length = 8
    while length * length < steps:
        length *= 2
    return length


def _address(name: str, tensor: Tensor | None) -> int | None:
    if tensor is None:
        return None
    address = tensor.data_ptr()
    if address == 0 and tensor.numel():
        raise RuntimeError(f"{name} has no memory: its storage was resized to 0 bytes")
    return address or None


def _describe(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    kernel: Kernel,
    reverse: bool,
    recompute: bool,
    threads: int,
) -> tuple[library.Scan, list[Any]]:
    """The description of the scan for the library, and what must stay alive while it is used."""
    facts = library.FACTS
    scan = library.Scan()
    scan.dtype = facts.dtypes.index(_name(input.dtype))
    scan.cell, scan.gate = list(facts.cells).index(kernel.cell), list(facts.gates).index(kernel.gate)
    scan.steps = len(input) if batch_sizes is None else len(batch_sizes)
    scan.batch, scan.inputs = state[0].shape[0], input.shape[-1]
    scan.hidden, scan.recurrent = state[-1].shape[1], state[0].shape[1]
    scan.reverse, scan.threads = reverse, threads
    scan.segment = segment_length(scan.steps) if recompute else 0
    scan.odds = math.exp(-kernel.beta)
    if kernel.memory:
        _, scan.heads, scan.relu = kernel.memory
    scan.program = kernel.program.encode() or None
    scan.input_strides[:] = (0, *input.stride())[-3:]
    scan.input = _address("input", input)
    alive: list[Any] = [input]
    if kernel.coefficients:
        numbers = (ctypes.c_double * len(kernel.coefficients))(*kernel.coefficients)
        scan.coefficient_count, scan.coefficients = len(numbers), ctypes.addressof(numbers)
        alive.append(numbers)
    if batch_sizes is not None:
        starts = batch_sizes.cumsum(0) - batch_sizes
        lengths = (batch_sizes > torch.arange(scan.batch).unsqueeze(-1)).sum(-1)
        scan.starts = starts.data_ptr()
        alive.append(starts)
    if lengths is not None:
        lengths = lengths.contiguous()
        scan.lengths = _address("lengths", lengths)
        alive.append(lengths)
    for place, tensor in enumerate(state):
        solid = tensor.contiguous()
        scan.state[place] = _address(f"state {place}", solid)
        alive.append(solid)
    for name, tensor in zip(kernel.weights, weights, strict=True):
        solid = tensor.contiguous()
        scan.weights[facts.weights.index(name)] = _address(name, solid)
        alive.append(solid)
    return scan, alive


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _result_shapes(
    input: Tensor,
    state: Sequence[Tensor],
    batch_sizes: Tensor | None,
    kernel: Kernel,
    keep: bool,
    recompute: bool,
    collect: bool,
) -> dict[str, Sequence[int]]:
    """Of the results by name, in their order. Zeros where there is nothing to hold."""
    rows, hidden = input.shape[:-1], state[-1].shape[1]
    size = 0
    if keep:
        steps = input.shape[0] if batch_sizes is None else batch_sizes.shape[0]
        row = library.kept_row(_name(input.dtype), kernel.cell, kernel.gate, hidden, recompute, kernel.late)
        size = row * state[0].shape[0] * (-(-steps // segment_length(steps)) if recompute else steps)
    finals = {name: s.shape for name, s in zip(("h_n", "c_n"), state, strict=False)}
    return {
        "output": (*rows, state[0].shape[1]),
        **finals,
        "cells": (*rows, hidden) if collect else (0,) * input.dim(),
        "kept": (size,),
    }


def outputs(
    input: Tensor,
    state: Sequence[Tensor],
    batch_sizes: Tensor | None,
    kernel: Kernel,
    keep: bool,
    recompute: bool,
    collect: bool,
    room: Room = Tensor.new_empty,
) -> list[Tensor]:
    """Room for the results: output, the final states, cells, kept, threads. Empty where there is nothing to hold."""
    shapes = _result_shapes(input, state, batch_sizes, kernel, keep, recompute, collect)
    results = [room(input, shape) for shape in shapes.values()]
    return [*results, torch.empty((), dtype=torch.int64, device=input.device)]


def gradients_of(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    input_gradient: bool,
    room: Room = Tensor.new_empty,
) -> list[Tensor]:
    """Room for the gradients of input (empty if not wanted), state and weights."""
    first = room(input, input.shape if input_gradient else (0,))
    return [first, *(room(input, tensor.shape) for tensor in (*state, *weights))]


def _pooled(like: Tensor, shape: Sequence[int]) -> Tensor:
    """An empty tensor, from the library's pool if it is large."""
    size = math.prod(shape) * like.itemsize
    if size < POOLED:
        return like.new_empty(shape)
    flat = torch.frombuffer(library.take(size), dtype=like.dtype)
    strides = torch.empty(tuple(shape), device="meta").stride()
    # Not a view, which autograd would not let the user change.
    return like.new_empty(0).set_(flat.untyped_storage(), 0, tuple(shape), strides)


def run_forward(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    kernel: str,
    reverse: bool,
    keep: bool,
    recompute: bool,
    collect: bool,
) -> list[Tensor]:
    """One direction of one layer: output (T, B, n), the final states, cells, kept, threads.

    With ``batch_sizes`` input, output and cells are packed: (N, features).

    ``cells`` (c at every step) is empty unless ``collect``. ``kept`` is what the backward reads, empty unless ``keep``;
    ``threads`` is the number of threads that its layout belongs to.
    """
    parsed = parse(kernel)
    check_arguments(parsed, input, state, weights, lengths, batch_sizes)
    results = outputs(input, state, batch_sizes, parsed, keep, recompute, collect, _pooled)
    output, *finals, cells, kept, threads = results
    count = torch.get_num_threads()
    threads.fill_(count)
    if output.numel() == 0:
        for final, first in zip(finals, state, strict=True):
            final.copy_(first)
        return results
    described, _alive = _describe(input, state, weights, lengths, batch_sizes, parsed, reverse, recompute, count)
    described.kept_size = kept.numel()
    described.output, described.kept = output.data_ptr(), kept.data_ptr() or None
    described.cells = cells.data_ptr() or None
    for place, final in enumerate(finals):
        described.final_state[place] = final.data_ptr()
    library.forward(described)
    return results


def run_backward(
    gradients: Sequence[Tensor],
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    output: Tensor,
    kept: Tensor,
    threads: Tensor,
    kernel: str,
    reverse: bool,
    recompute: bool,
    input_gradient: bool,
) -> list[Tensor]:
    """The gradients of input (empty unless ``input_gradient``), state and weights, given those of output, the final
    states and cells, of shape (0,) where there is none."""
    parsed = parse(kernel)
    check_arguments(parsed, input, state, weights, lengths, batch_sizes)
    shapes = _result_shapes(input, state, batch_sizes, parsed, True, recompute, parsed.states == 2)
    names = [name for name in shapes if name != "kept"]
    if len(gradients) != len(names):
        raise RuntimeError(f"gradients are those of {', '.join(names)}, got {len(gradients)}")
    given = dict(zip(names, gradients, strict=True))
    check_backward(given, output, kept, threads, input.dtype, shapes)
    incoming = {name: gradient for name, gradient in given.items() if gradient.numel()}
    results = gradients_of(input, state, weights, input_gradient, _pooled)
    of_input, of_state, of_weights = results[0], results[1 : 1 + len(state)], results[1 + len(state) :]
    if output.numel() == 0:
        for gradient in results:
            gradient.zero_()
        for gradient, name in zip(of_state, ("h_n", "c_n"), strict=False):
            if name in incoming:
                gradient.copy_(incoming[name])
        return results
    described, alive = _describe(input, state, weights, lengths, batch_sizes, parsed, reverse, recompute, int(threads))
    described.kept_size = kept.numel()
    for name, saved in (("output", output.contiguous()), ("kept", kept.contiguous())):
        setattr(described, name, _address(name, saved))
        alive.append(saved)
    for name, gradient in incoming.items():
        strided = name in ("output", "cells")  # only the features must be contiguous
        rows = gradient if strided and gradient.stride(-1) == 1 else gradient.contiguous()
        address = _address(f"grad_{name}", rows)
        if strided:
            getattr(described, f"grad_{name}_strides")[:] = (0, *rows.stride())[-3:-1]
            setattr(described, f"grad_{name}", address)
        else:
            described.grad_final_state[names.index(name) - 1] = address
        alive.append(rows)  # until the library has read it
    described.grad_input = of_input.data_ptr() or None
    for place, gradient in enumerate(of_state):
        described.grad_state[place] = gradient.data_ptr()
    for name, gradient in zip(parsed.weights, of_weights, strict=True):
        described.grad_weights[library.FACTS.weights.index(name)] = gradient.data_ptr() or None
    library.backward(described)
    return results
