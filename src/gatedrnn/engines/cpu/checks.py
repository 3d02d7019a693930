"""What must be true before a pointer leaves Python: the kind of every tensor, and its exact shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gatedrnn.engines.cpu.kernel import Kernel
from gatedrnn.engines.packing import check_batch_sizes

Shape = Sequence[int]
_STATES = ("h_0", "c_0")
_DTYPES = (torch.float32, torch.float64)


def check_arguments(
    kernel: Kernel,
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
) -> None:
    """Raise for arguments of a scan that do not belong together. The library checks the values of ``lengths``."""
    if lengths is None and batch_sizes is None and _fit(kernel, input, state, weights):
        return
    if input is None:  # torch lets None pass where a schema asks for a tensor
        raise RuntimeError("input is missing")
    dtype = input.dtype
    if dtype not in _DTYPES:
        raise ValueError(f"input must be float32 or float64, got {dtype}")
    _check_kind("input", input, dtype)
    _check_dimensions("input", input, ("steps", "batch", "features") if batch_sizes is None else ("rows", "features"))
    batch = _batch(input, lengths, batch_sizes)
    if len(state) != kernel.states:
        raise RuntimeError(f"the cell {kernel.cell!r} has {kernel.states} state(s), got {len(state)}")
    if len(weights) != len(kernel.weights):
        raise RuntimeError(f"{len(kernel.weights)} weights are named, got {len(weights)}")
    for name, tensor in zip(_STATES, state, strict=False):
        if tensor is None:
            raise RuntimeError(f"{name} is missing")
        _check_kind(name, tensor, dtype)
        _check_dimensions(name, tensor, ("batch", "hidden"))
    hidden = state[-1].shape[1]
    recurrent = state[0].shape[1] if "weight_hr" in kernel.weights or kernel.memory else hidden
    if kernel.memory and hidden != kernel.memory[0]:
        raise RuntimeError(
            f"size mismatch for c_0: expected ({batch}, {kernel.memory[0]}), got {tuple(state[1].shape)}"
        )
    for name, tensor, size in zip(_STATES, state, (recurrent, hidden), strict=False):
        _check_shape(name, tensor, dtype, (batch, size))
    shapes = kernel.shapes(input.shape[-1], hidden, recurrent)
    for name, tensor, shape in zip(kernel.weights, weights, shapes, strict=True):
        if tensor is None:
            raise RuntimeError(f"{name} is missing: expected a tensor of shape {shape}")
        _check_shape(name, tensor, dtype, shape)


def _fit(kernel: Kernel, input: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]) -> bool:
    """The same checks for padded rows, without saying what is wrong: a single step is as short as they are."""
    if input is None or input.dtype not in _DTYPES or input.dim() != 3:
        return False
    if len(state) != kernel.states or len(weights) != len(kernel.weights):
        return False
    dtype = input.dtype
    for tensor in (input, *state, *weights):
        if tensor is None or tensor.dtype is not dtype or not tensor.is_cpu or tensor.layout is not torch.strided:
            return False
    if state[-1].dim() != 2 or state[0].dim() != 2:
        return False
    _, batch, inputs = input.shape
    hidden = state[-1].shape[1]
    recurrent = state[0].shape[1] if "weight_hr" in kernel.weights or kernel.memory else hidden
    if kernel.memory and hidden != kernel.memory[0]:
        return False
    if state[-1].shape != (batch, hidden) or state[0].shape != (batch, recurrent):
        return False
    shapes = kernel.shapes(inputs, hidden, recurrent)
    return all(tensor.shape == shape for tensor, shape in zip(weights, shapes, strict=True))


def check_backward(
    gradients: Mapping[str, Tensor | None],
    output: Tensor,
    kept: Tensor,
    dtype: torch.dtype,
    shapes: Mapping[str, Shape],
    kept_size: int,
) -> None:
    """Raise unless gradients and saved results have the shapes of the results they belong to.

    The saved ones come through the hooks of torch.autograd.graph.saved_tensors_hooks, which may hand back anything.
    """
    for name, gradient in gradients.items():
        if gradient is not None and (gradient.numel() or name != "cells"):  # they may not have been collected
            _check_shape(f"grad_{name}", gradient, dtype, shapes[name])
    _check_shape("output", output, dtype, shapes["output"])
    _check_shape("kept", kept, dtype, (kept_size,))


def _check_shape(name: str, tensor: Tensor, dtype: torch.dtype, shape: Shape) -> None:
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
