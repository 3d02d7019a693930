"""What must be true before a pointer leaves Python: the kind of every tensor, and its exact shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from gatedrnn.engines.cpu import library
from gatedrnn.engines.cpu.names import cell_named
from gatedrnn.engines.packing import check_batch_sizes

Shape = tuple[int, ...]

_NAMES = ("input", "h_0", "c_0", *library.WEIGHTS)


def has_memory(cell: str) -> bool:
    return cell in ("lstm", "lstm_tied")


@lru_cache(maxsize=1024)
def _weight_shapes(
    cell: str, gate: str, inputs: int, hidden: int, recurrent: int, projected: bool, beta: float
) -> tuple[Shape | None, ...]:
    """The shapes of library.WEIGHTS; None: there is no such weight."""
    made = cell_named(cell, recurrent if projected else 0, beta)
    shapes = made.parameter_shapes(inputs, hidden, bias=True, aux=gate == "refine")
    return tuple(shapes.get(name) for name in library.WEIGHTS)


def check_arguments(
    input: Tensor,
    h_0: Tensor,
    c_0: Tensor | None,
    weights: Sequence[Tensor | None],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    cell: str,
    gate: str,
    beta: float,
) -> None:
    """Raise for arguments of a scan that do not belong together. The library checks the values of ``lengths``."""
    if cell not in library.CELLS:
        raise ValueError(f"unknown cell {cell!r}; known cells: {', '.join(library.CELLS)}")
    if gate not in library.GATES:
        raise ValueError(f"unknown gate {gate!r}; known gates: {', '.join(library.GATES)}")
    if input is None or h_0 is None:  # torch lets None pass where a schema asks for a tensor
        raise RuntimeError(f"{'input' if input is None else 'h_0'} is missing")
    if input.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"input must be float32 or float64, got {input.dtype}")
    tensors = (input, h_0, c_0, *weights)
    for name, tensor in zip(_NAMES, tensors, strict=True):
        if tensor is not None:
            _check_kind(name, tensor, input.dtype)

    _check_dimensions("input", input, ("steps", "batch", "features") if batch_sizes is None else ("rows", "features"))
    _check_dimensions("h_0", h_0, ("batch", "hidden"))
    if c_0 is not None:
        _check_dimensions("c_0", c_0, ("batch", "hidden"))
    batch = _batch(input, lengths, batch_sizes)
    memory, projected = has_memory(cell), weights[library.WEIGHTS.index("weight_hr")] is not None
    if memory and c_0 is None:
        raise RuntimeError(f"c_0 is missing: the cell {cell!r} has a memory")
    hidden = h_0.shape[1] if c_0 is None else c_0.shape[1]
    recurrent = h_0.shape[1] if projected else hidden
    shapes = (
        tuple(input.shape),
        (batch, recurrent),
        (batch, hidden) if memory else None,
        *_weight_shapes(cell, gate, input.shape[-1], hidden, recurrent, projected, beta),
    )
    for name, tensor, shape in zip(_NAMES, tensors, shapes, strict=True):
        if tensor is None:
            if shape is not None and not name.startswith("bias"):
                raise RuntimeError(f"{name} is missing: expected a tensor of shape {shape}")
        elif shape is None:
            raise RuntimeError(f"the cell {cell!r} with the gate {gate!r} has no {name}, got {tuple(tensor.shape)}")
        elif tensor.shape != shape:
            raise RuntimeError(f"size mismatch for {name}: expected {shape}, got {tuple(tensor.shape)}")


def check_backward(
    gradients: Mapping[str, Tensor | None],
    output: Tensor,
    kept: Tensor,
    threads: Tensor,
    dtype: torch.dtype,
    shapes: Sequence[Sequence[int]],
) -> None:
    """Raise unless gradients and saved results have the shapes of output, h_n, c_n, cells and kept.

    The saved ones come through the hooks of torch.autograd.graph.saved_tensors_hooks, which may hand back anything.
    """
    for (name, gradient), shape in zip(gradients.items(), shapes[:4], strict=True):
        if gradient is not None and (gradient.numel() or name != "cells"):  # they may not have been collected
            _check_shape(f"grad_{name}", gradient, dtype, shape)
    _check_shape("output", output, dtype, shapes[0])
    _check_shape("kept", kept, dtype, shapes[4])
    if threads.numel() != 1:
        raise RuntimeError(f"size mismatch for threads: expected (), got {tuple(threads.shape)}")


def _check_shape(name: str, tensor: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    _check_kind(name, tensor, dtype)
    if tensor.shape != tuple(shape):
        raise RuntimeError(f"size mismatch for {name}: expected {tuple(shape)}, got {tuple(tensor.shape)}")


def _check_kind(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    if tensor.dtype != dtype or not tensor.is_cpu or tensor.layout is not torch.strided:
        raise ValueError(
            f"{name} must be a dense tensor of {dtype} on the CPU, "
            f"got {tensor.dtype} on {tensor.device} with the layout {tensor.layout}"
        )


def _check_dimensions(name: str, tensor: Tensor, dimensions: tuple[str, ...]) -> None:
    if tensor.dim() != len(dimensions):
        raise RuntimeError(f"{name} must be ({', '.join(dimensions)}), got {tuple(tensor.shape)}")


def _batch(input: Tensor, lengths: Tensor | None, batch_sizes: Tensor | None) -> int:
    if batch_sizes is None:
        batch = input.shape[1]
        if lengths is not None:
            _check_shape("lengths", lengths, torch.int64, (batch,))
        return batch
    if lengths is not None:
        raise ValueError("packed input has its lengths in batch_sizes; lengths must be None")
    check_batch_sizes(batch_sizes, len(input))
    return int(batch_sizes[0])
