"""Checks of arguments, with torch.nn's types of error."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gatedrnn import inits
from gatedrnn.cells import Cell, Weights
from gatedrnn.engines.packing import check_batch_sizes
from gatedrnn.gates.stable import has_no_values
from gatedrnn.inits import ForgetInit


def check_sizes(input_size: int, hidden_size: int, bias: bool) -> None:
    """torch.nn's checks of the first arguments."""
    check_bool("bias", bias)
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")


def check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")


def check_probability(name: str, p: object) -> None:
    if not isinstance(p, numbers.Number) or isinstance(p, bool) or not 0 <= p <= 1:  # type: ignore[operator]
        raise ValueError(
            f"{name} should be a number in range [0, 1] representing the probability of an element being zeroed"
        )


def check_no_projection(layer: str, proj_size: int | None) -> None:
    """torch.nn.GRU's answer to an argument that only the LSTM has."""
    if proj_size is not None:
        raise ValueError(f"proj_size argument is only supported for LSTM, not {layer}")


def resolve_init(forget_init: str | ForgetInit | None, bias: bool) -> ForgetInit | None:
    """The initialiser, or an error where there is no bias to initialise."""
    if forget_init is None:
        return None
    if not bias:
        raise ValueError("forget_init sets the forget bias, and bias=False leaves none: remove one of the two")
    return inits.resolve(forget_init)


def autocasting(x: Tensor) -> bool:
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def _is_odd(tensor: Tensor) -> bool:
    return tensor.layout is not torch.strided or tensor.is_nested


def check_dense(layer: str, name: str, tensor: Tensor) -> None:
    if tensor.is_nested:
        raise RuntimeError(f"{layer}: {name} must not be a nested tensor; use a PackedSequence or lengths")
    if tensor.layout is not torch.strided:
        raise RuntimeError(f"{layer}: {name} must be dense, got the layout {tensor.layout}; convert it with to_dense()")


def check_untraced(layer: str, input: object) -> None:
    if isinstance(input, torch.fx.Proxy):
        raise TypeError(
            f"{layer}: torch.fx.symbolic_trace cannot trace it; use a Tracer whose is_leaf_module is true for "
            "gatedrnn's layers, or use torch.export.export"
        )


def check_dimensions(layer: str, input: object) -> None:
    if not isinstance(input, Tensor):
        check_untraced(layer, input)
        raise TypeError(f"{layer}: Expected input to be a Tensor or PackedSequence, got {type(input).__name__}")
    check_dense(layer, "input", input)
    if input.dim() not in (2, 3):
        raise ValueError(f"{layer}: Expected input to be 2D or 3D, got {input.dim()}D instead")


def check_collect(return_states: object) -> None:
    if return_states not in (False, True, "gates"):
        raise ValueError(f'return_states must be False, True or "gates", got {return_states!r}')


def check_packed(layer: str, data: Tensor, batch_sizes: Tensor, order: Tensor | None, original: Tensor | None) -> None:
    """Check that the parts of a PackedSequence belong together; they may not if it was constructed by hand."""
    check_dense(layer, "input", data)
    if data.dim() != 2:
        raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
    check_batch_sizes(batch_sizes, len(data))
    for name, indices in (("sorted_indices", order), ("unsorted_indices", original)):
        if indices is not None and indices.shape != (int(batch_sizes[0]),):
            raise RuntimeError(
                f"{layer}: {name} must have an entry for each of {int(batch_sizes[0])} rows, got {tuple(indices.shape)}"
            )


def check_weights(layer: str, key: str, weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Weights have the layer's own shapes: they may have been assigned or come from functional_call."""
    for name, weight in weights.items():
        if isinstance(weight, Tensor) and not _is_odd(weight) and weight.shape == shapes[name]:
            continue
        suffix = f"_{key}" if key else ""
        if not isinstance(weight, Tensor):
            raise RuntimeError(f"{layer}: {name}{suffix} must be a tensor of shape {shapes[name]}, got {weight!r}")
        check_dense(layer, name + suffix, weight)
        if weight.shape != shapes[name]:
            raise RuntimeError(
                f"{layer}: size mismatch for {name}{suffix}: expected {shapes[name]}, got {tuple(weight.shape)}"
            )


def check_alike(layer: str, layers: Mapping[str, Weights]) -> None:
    """All weights are on one device and have one floating dtype; under autocast any floating dtypes."""
    named = [(name, key, weight) for key, weights in layers.items() for name, weight in weights.items()]
    first, dtype, device = named[0], named[0][2].dtype, named[0][2].device
    for name, key, weight in named:
        if weight.device == device and weight.dtype == dtype and dtype.is_floating_point:
            continue
        one, other = (f"{name}_{key}" if key else name for name, key, _ in (first, (name, key, weight)))
        if weight.device != device:
            raise RuntimeError(
                f"{layer}: parameters are not at the same device, found {one} at {device} and {other} at "
                f"{weight.device}"
            )
        if not weight.dtype.is_floating_point:
            raise RuntimeError(f"{layer}: {other} must have a floating dtype, got {weight.dtype}")
        if not autocasting(weight):
            raise RuntimeError(
                f"{layer}: parameters do not have the same dtype, found {one} of {dtype} and {other} of "
                f"{weight.dtype}; convert all with model.to({dtype})"
            )


def check_input(layer: str, x: Tensor, weight: Tensor, input_size: int) -> None:
    """x is (T, B, I)."""
    if x.dtype != weight.dtype and not (autocasting(x) and x.is_floating_point()):
        raise ValueError(
            f"RNN input dtype ({x.dtype}) does not match weight dtype ({weight.dtype}). "
            f"Convert input: input.to({weight.dtype}), or convert model: model.to({x.dtype})"
        )
    if x.device != weight.device:
        raise RuntimeError(
            "Input and parameter tensors are not at the same device, "
            f"found input tensor at {x.device} and parameter tensor at {weight.device}"
        )
    if x.shape[-1] != input_size:
        raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {input_size}, got {x.shape[-1]}")
    if x.shape[0] == 0:
        raise RuntimeError(f"Expected sequence length to be larger than 0 in {layer}")


def check_step_input(x: Tensor, weight: Tensor, input_size: int) -> None:
    """x is (B, I). torch.nn's cells leave these errors to the matrix product, which raises RuntimeError."""
    if x.shape[-1] != input_size:
        raise RuntimeError(f"input has inconsistent input_size: got {x.shape[-1]} expected {input_size}")
    if x.dtype != weight.dtype and not (autocasting(x) and x.is_floating_point()):
        raise RuntimeError(f"input and weights must have the same dtype, but got {x.dtype} and {weight.dtype}")
    if x.device != weight.device:
        raise RuntimeError(f"input and weights must be at the same device, found {x.device} and {weight.device}")


def state_tuple(layer: str, cell: Cell, hx: Tensor | Sequence[Tensor] | None) -> tuple[Tensor, ...] | None:
    """hx as a tuple with one tensor per entry of the state."""
    if hx is None:
        return None
    if len(cell.states) == 1:
        if not isinstance(hx, Tensor):
            raise TypeError(f"{layer}: hx must be one tensor {cell.states[0]}_0, got {type(hx).__name__}")
        return (hx,)
    names = ", ".join([f"{name}_0" for name in cell.states])
    if not isinstance(hx, (tuple, list)) or not all(isinstance(s, Tensor) for s in hx):
        got = f"({', '.join(type(s).__name__ for s in hx)})" if isinstance(hx, tuple | list) else type(hx).__name__
        raise TypeError(f"{layer}: hx must be a tuple ({names}) of tensors, got {got}")
    if len(hx) != len(cell.states):
        raise RuntimeError(f"{layer}: hx must be a tuple ({names}), got {len(hx)} tensor(s)")
    return tuple(hx)


def states_given(cell: Cell, hx: object) -> Sequence[Any]:
    """What was passed as hx, entry by entry and unchecked; nothing for None. A tuple of another length is one entry."""
    if hx is None:
        return ()
    return hx if isinstance(hx, (tuple, list)) and len(hx) == len(cell.states) > 1 else (hx,)


def check_state(layer: str, name: str, state: Tensor, x: Tensor, expected: tuple[int, ...]) -> None:
    """A state has its size, and the dtype of the input; beside 16-bit input or under autocast it may be float32."""
    if _is_odd(state):
        check_dense(layer, f"{name}_0", state)
    if state.shape != expected:
        raise RuntimeError(f"Expected hidden size {expected} for {name}_0, got {list(state.shape)}")
    if state.dtype != x.dtype and not (state.dtype == torch.float32 and (x.dtype.itemsize == 2 or autocasting(x))):
        raise RuntimeError(f"input and {name}_0 must have the same dtype, but got {x.dtype} and {state.dtype}")
    if state.device != x.device:
        raise RuntimeError(f"input and {name}_0 must be at the same device, found {x.device} and {state.device}")


def checked_lengths(layer: str, lengths: Tensor | Sequence[int] | None, x: Tensor) -> Tensor | None:
    """lengths as int64 on the device of x (T, B, I)."""
    if lengths is None:
        return None
    if not isinstance(lengths, Tensor):
        if not hasattr(lengths, "__len__") or isinstance(lengths, str | bytes):
            raise TypeError(f"{layer}: lengths must be a tensor or a sequence of integers, got {lengths!r}")
        try:
            lengths = torch.tensor(lengths, dtype=None if len(lengths) else torch.int64, device="cpu")  # []: floats
        except (TypeError, ValueError, RuntimeError) as wrong:
            raise TypeError(f"{layer}: lengths must be a tensor or a sequence of integers: {wrong}") from wrong
    elif lengths.is_meta and not x.is_meta:
        raise ValueError(f"{layer}: lengths must have values, got a tensor on the device meta")
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype == torch.bool:
        raise TypeError(f"{layer}: lengths must be integers, got {lengths.dtype}")
    if lengths.shape != (x.shape[1],):
        raise ValueError(f"{layer}: lengths must have one entry per row, ({x.shape[1]},), got {tuple(lengths.shape)}")
    mapped = torch._C._functorch.is_batchedtensor(lengths)
    if not (mapped or torch.compiler.is_compiling() or has_no_values(lengths)):  # values that can be looked at
        for index, length in enumerate(lengths.tolist()):
            if not 1 <= length <= len(x):
                raise ValueError(
                    f"{layer}: lengths must lie between 1 and the number of steps {len(x)}, "
                    f"got {length} at index {index}"
                )
    # A copy: the backward pass needs it, and the caller may change the original.
    return lengths.to(x.device, torch.int64, copy=True)
