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
from gatedrnn.engines.cpu.checks import check_arguments, check_backward, has_memory

#: Bytes from which on a buffer comes from the library, as its own large ones do.
POOLED = 4 << 20


def segment_length(steps: Any) -> int:
    """Steps between two checkpoints: the power of two next to √T, so that torch.compile needs only comparisons."""
    length = 8
    while length * length < steps:
        length *= 2
    return length


def _fill(scan: library.Scan, **tensors: Tensor | None) -> None:
    for name, tensor in tensors.items():
        if tensor is None or tensor.numel() == 0:
            setattr(scan, name, None)
        elif tensor.untyped_storage().nbytes() == 0:
            raise RuntimeError(f"{name} has no memory: its storage was resized to 0 bytes")
        else:
            setattr(scan, name, tensor.data_ptr())


def _describe(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    weights: Sequence[Tensor | None],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    coefficients: Sequence[float],
    beta: float,
    reverse: bool,
    recompute: bool,
    threads: int,
) -> tuple[library.Scan, list[Any]]:
    """The description of the scan for the library, and what must stay alive while it is used."""
    scan = library.Scan()
    scan.dtype = library.DTYPES.index(str(input.dtype).removeprefix("torch."))
    scan.cell, scan.gate = library.CELLS.index(cell), library.GATES.index(gate)
    scan.steps = _steps(input, batch_sizes)
    scan.batch, scan.inputs = h_0.shape[0], input.shape[-1]
    scan.hidden, scan.recurrent = _hidden(h_0, c_0), h_0.shape[1]
    scan.reverse, scan.threads = reverse, threads
    scan.segment = segment_length(scan.steps) if recompute else 0
    numbers = (ctypes.c_double * max(1, len(coefficients)))(*coefficients)
    scan.coefficient_count, scan.coefficients = len(coefficients), ctypes.addressof(numbers)
    scan.odds = math.exp(-beta) if cell == "janet" else 1.0
    scan.input_strides[:] = (0, *input.stride())[-3:]
    starts = None
    if batch_sizes is not None:
        starts = batch_sizes.cumsum(0) - batch_sizes
        lengths = (batch_sizes > torch.arange(scan.batch).unsqueeze(-1)).sum(-1)
    solid = [None if w is None else w.contiguous() for w in (h_0, c_0, *weights, lengths, starts)]
    names = ("h_0", "c_0", *library.WEIGHTS, "lengths", "starts")
    _fill(scan, input=input, **dict(zip(names, solid, strict=True)))
    return scan, [numbers, input, *solid]


def _steps(input: Tensor, batch_sizes: Tensor | None) -> int:
    return int(len(input) if batch_sizes is None else len(batch_sizes))


def _hidden(h_0: Tensor, c_0: Tensor | None) -> int:
    return h_0.shape[1] if c_0 is None else c_0.shape[1]


def _result_shapes(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    keep: bool,
    recompute: bool,
    collect: bool,
) -> tuple[Sequence[int], ...]:
    """Of output, h_n, c_n, cells and kept. Zeros where there is nothing to hold."""
    rows = input.shape[:-1]
    hidden = _hidden(h_0, c_0)
    size = 0
    if keep:
        steps = input.shape[0] if batch_sizes is None else batch_sizes.shape[0]
        row = library.kept_row(str(input.dtype).removeprefix("torch."), cell, gate, hidden, recompute)
        size = row * h_0.shape[0] * (-(-steps // segment_length(steps)) if recompute else steps)
    return (
        (*rows, h_0.shape[1]),
        h_0.shape,
        c_0.shape if c_0 is not None else (0, 0),
        (*rows, hidden) if collect else (0,) * input.dim(),
        (size,),
    )


def outputs(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    keep: bool,
    recompute: bool,
    collect: bool,
    room: Callable[[Tensor, Sequence[int]], Tensor] = Tensor.new_empty,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Room for the results: output, h_n, c_n, cells, kept, threads. Empty where there is nothing to hold."""
    output, h_n, c_n, cells, kept = _result_shapes(input, h_0, c_0, batch_sizes, cell, gate, keep, recompute, collect)
    return (
        room(input, output),
        input.new_empty(h_n),
        input.new_empty(c_n),
        room(input, cells),
        room(input, kept),
        torch.empty((), dtype=torch.int64, device=input.device),
    )


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
    h_0: Tensor,
    c_0: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    weight_hr: Tensor | None,
    weight_ih_aux: Tensor | None,
    weight_hh_aux: Tensor | None,
    bias_ih_aux: Tensor | None,
    bias_hh_aux: Tensor | None,
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    coefficients: Sequence[float],
    beta: float,
    reverse: bool,
    keep: bool,
    recompute: bool,
    collect: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """One direction of one layer: output (T, B, n), h_n, c_n, cells, kept, threads.

    With ``batch_sizes`` input, output and cells are packed: (N, features).

    c_n is empty for a cell without a memory and cells (c at every step) unless ``collect``. ``kept`` is what the
    backward reads, empty unless ``keep``; ``threads`` is the number of threads that its layout belongs to.
    """
    weights = (
        weight_ih,
        weight_hh,
        bias_ih,
        bias_hh,
        weight_hr,
        weight_ih_aux,
        weight_hh_aux,
        bias_ih_aux,
        bias_hh_aux,
    )
    check_arguments(input, h_0, c_0, weights, lengths, batch_sizes, cell, gate, beta)
    results = outputs(input, h_0, c_0, batch_sizes, cell, gate, keep, recompute, collect, _pooled)
    output, h_n, c_n, cells, kept, threads = results
    threads.fill_(torch.get_num_threads())
    if output.numel() == 0:
        h_n.copy_(h_0)
        if c_0 is not None:
            c_n.copy_(c_0)
        return results
    described, _alive = _describe(
        input, h_0, c_0, weights, lengths, batch_sizes, cell, gate, coefficients, beta, reverse, recompute, int(threads)
    )
    described.kept_size = kept.numel()
    _fill(described, output=output, h_n=h_n, c_n=c_n, cells=cells, kept=kept)
    library.forward(described)
    return results


def run_backward(
    grad_output: Tensor | None,
    grad_h_n: Tensor | None,
    grad_c_n: Tensor | None,
    grad_cells: Tensor | None,
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
    weight_hr: Tensor | None,
    weight_ih_aux: Tensor | None,
    weight_hh_aux: Tensor | None,
    bias_ih_aux: Tensor | None,
    bias_hh_aux: Tensor | None,
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    output: Tensor,
    kept: Tensor,
    threads: Tensor,
    cell: str,
    gate: str,
    coefficients: Sequence[float],
    beta: float,
    reverse: bool,
    recompute: bool,
    input_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of input, h_0, c_0 and the nine weights, in the order of the arguments.

    Empty where the argument is None, and for the input unless ``input_gradient``.
    """
    weights = (
        weight_ih,
        weight_hh,
        bias_ih,
        bias_hh,
        weight_hr,
        weight_ih_aux,
        weight_hh_aux,
        bias_ih_aux,
        bias_hh_aux,
    )
    check_arguments(input, h_0, c_0, weights, lengths, batch_sizes, cell, gate, beta)
    shapes = _result_shapes(input, h_0, c_0, batch_sizes, cell, gate, True, recompute, has_memory(cell))
    given = {"output": grad_output, "h_n": grad_h_n, "c_n": grad_c_n, "cells": grad_cells}
    check_backward(given, output, kept, threads, input.dtype, shapes)
    incoming = {name: gradient for name, gradient in given.items() if gradient is not None and gradient.numel()}
    gradients = gradients_of(input, h_0, c_0, weights, input_gradient, _pooled)
    if output.numel() == 0:
        for gradient in gradients:
            gradient.zero_()
        for place, name in ((1, "h_n"), (2, "c_n")):
            if name in incoming:
                gradients[place].copy_(incoming[name])
        return gradients
    described, _alive = _describe(
        input, h_0, c_0, weights, lengths, batch_sizes, cell, gate, coefficients, beta, reverse, recompute, int(threads)
    )
    described.kept_size = kept.numel()
    solid = {"output": output.contiguous(), "kept": kept.contiguous()}
    for name, gradient in incoming.items():
        strided = name in ("output", "cells")  # only the features must be contiguous
        rows = gradient if strided and gradient.stride(-1) == 1 else gradient.contiguous()
        if strided:
            getattr(described, f"grad_{name}_strides")[:] = (0, *rows.stride())[-3:-1]
        solid[f"grad_{name}"] = rows  # alive until the library has read it
    _fill(described, **solid)
    names = ("input", "h_0", "c_0", *library.WEIGHTS)
    _fill(described, **{f"grad_{name}": gradient for name, gradient in zip(names, gradients, strict=True)})
    library.backward(described)
    return gradients


def gradients_of(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    weights: Sequence[Tensor | None],
    input_gradient: bool,
    room: Callable[[Tensor, Sequence[int]], Tensor] = Tensor.new_empty,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    def like(tensor: Tensor | None) -> Tensor:
        return room(input, tensor.shape if tensor is not None else (0,))

    return (like(input if input_gradient else None), like(h_0), like(c_0), *(like(w) for w in weights))  # type: ignore[return-value]
