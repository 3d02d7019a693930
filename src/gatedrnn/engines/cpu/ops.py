"""The native scan as torch operators: ``gatedrnn::scan`` and ``gatedrnn::scan_backward``.

Both have fake kernels (torch.compile, torch.export) and autograd formulas. The backward operator is differentiable
through :func:`use_reference`: a plain PyTorch scan that is right and slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gatedrnn.engines.cpu import calls, library

#: (input, h_0, c_0, weights by name, lengths, batch_sizes, cell, gate, coefficients, beta, reverse) -> output, h_n,
#: c_n, cells; c_0, c_n and cells are None for a cell without a memory.
Reference = Callable[..., tuple[Tensor, Tensor, Tensor | None, Tensor | None]]

_reference: Reference | None = None


def use_reference(scan: Reference) -> None:
    """Register the differentiable scan that the second derivative goes through."""
    global _reference
    _reference = scan


scan = torch.library.custom_op("gatedrnn::scan", calls.run_forward, mutates_args=())
scan_backward = torch.library.custom_op("gatedrnn::scan_backward", calls.run_backward, mutates_args=())


def _check_devices(device: torch.device, *tensors: Tensor | None) -> None:
    """One tensor on another device, meta say, leads here; results on the device of the input would be undefined."""
    for tensor in tensors:
        if tensor is not None and tensor.device != device:
            raise RuntimeError(f"all tensors must be on the same device, found {device} and {tensor.device}")


@scan.register_fake
def _(  # type: ignore[no-untyped-def]
    input, h_0, c_0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr,
    weight_ih_aux, weight_hh_aux, bias_ih_aux, bias_hh_aux,
    lengths, batch_sizes, cell, gate, coefficients, beta, reverse, keep, recompute, collect,
):  # fmt: skip
    _check_devices(
        input.device, h_0, c_0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr,
        weight_ih_aux, weight_hh_aux, bias_ih_aux, bias_hh_aux, lengths, batch_sizes,
    )  # fmt: skip
    return calls.outputs(input, h_0, c_0, batch_sizes, cell, gate, keep, recompute, collect)


@scan_backward.register_fake
def _(  # type: ignore[no-untyped-def]
    grad_output, grad_h_n, grad_c_n, grad_cells,
    input, h_0, c_0, weight_ih, weight_hh, bias_ih, bias_hh, weight_hr,
    weight_ih_aux, weight_hh_aux, bias_ih_aux, bias_hh_aux,
    lengths, batch_sizes, output, kept, threads, cell, gate, coefficients, beta, reverse, recompute, input_gradient,
):  # fmt: skip
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
    given = (grad_output, grad_h_n, grad_c_n, grad_cells)
    _check_devices(input.device, *given, h_0, c_0, *weights, lengths, batch_sizes, output, kept, threads)
    return calls.gradients_of(input, h_0, c_0, weights, input_gradient)


# Numbers of arguments: the differentiable ones (input, h_0, c_0, weights), then lengths, batch_sizes and the options.
_TENSORS = 3 + len(library.WEIGHTS)
_OPTIONS = 12  # of the backward: lengths, batch_sizes, output, kept, threads and seven more


def _scan_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    result, _, _, _, kept, threads = output
    tensors = inputs[: _TENSORS + 2]
    ctx.cell, ctx.gate, ctx.coefficients, ctx.beta, ctx.reverse, keep, ctx.recompute, _ = inputs[_TENSORS + 2 :]
    if not keep:
        raise RuntimeError("gatedrnn::scan was called with keep=False, so it has no gradient; call it with keep=True")
    ctx.present = [tensor is not None for tensor in tensors]
    ctx.save_for_backward(*(t for t in tensors if t is not None), result, kept, threads)
    ctx.set_materialize_grads(False)


def _restore(ctx: Any) -> tuple[list[Tensor | None], list[Tensor]]:
    """Saved tensors: those that may be None put back in their places, and the others."""
    saved = list(ctx.saved_tensors)
    return [saved.pop(0) if present else None for present in ctx.present], saved


def _scan_gradient(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
    tensors, (output, kept, threads) = _restore(ctx)
    computed = scan_backward(
        *gradients[:4], *tensors, output, kept, threads, ctx.cell, ctx.gate, ctx.coefficients, ctx.beta, ctx.reverse,
        ctx.recompute, ctx.needs_input_grad[0],
    )  # fmt: skip
    wanted = [g if need else None for g, need in zip(computed, ctx.needs_input_grad, strict=False)]
    return (*wanted, *(None,) * 10)


scan.register_autograd(_scan_gradient, setup_context=_scan_context)


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.device, tuple(tensor.shape)


def _backward_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    tensors = inputs[: 4 + _TENSORS + 2]
    ctx.cell, ctx.gate, ctx.coefficients, ctx.beta, ctx.reverse, _, _ = inputs[4 + _TENSORS + 5 :]
    ctx.present = [tensor is not None for tensor in tensors]
    ctx.kinds = [_kind(t) for t in tensors if t is not None]
    ctx.save_for_backward(*(t for t in tensors if t is not None))
    ctx.set_materialize_grads(False)


def _backward_gradient(ctx: Any, *outer: Tensor | None) -> tuple[Any, ...]:
    """The second derivative: the first one once more, by autograd through the reference scan."""
    if _reference is None:
        raise RuntimeError("the second derivative needs the reference engine; import gatedrnn.engines.cpu.engine first")
    saved, _ = _restore(ctx)
    for tensor, kind in zip((t for t in saved if t is not None), ctx.kinds, strict=True):
        if _kind(tensor) != kind:
            raise RuntimeError(f"size mismatch for a saved tensor: expected {kind}, got {_kind(tensor)}")
    *saved, lengths, batch_sizes = saved
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, so that a derivative of any order finds its way to the tensors themselves.
        views = [None if t is None else t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in saved]
        given, (input, h_0, c_0, *weights) = views[:4], views[4:]
        named = {name: w for name, w in zip(library.WEIGHTS, weights, strict=True) if w is not None}
        results = _reference(
            input, h_0, c_0, named, lengths, batch_sizes, ctx.cell, ctx.gate, ctx.coefficients, ctx.beta, ctx.reverse
        )
        pairs = [
            (r, g)
            for r, g in zip((results[0], results[1], results[2], results[3]), given, strict=True)
            if r is not None and g is not None and g.numel()
        ]
        roots = [t for t in views[4:] if t is not None]
        if not pairs:
            return (None,) * (4 + _TENSORS + _OPTIONS)
        first = torch.autograd.grad(
            [r for r, _ in pairs], roots, [g for _, g in pairs], create_graph=True, allow_unused=True
        )
        of_root = iter(first)
        by_place = [next(of_root) if t is not None else None for t in views[4:]]
        chosen = [
            (f, o)
            for f, o in zip(by_place, outer, strict=True)
            if f is not None and f.requires_grad and o is not None and o.numel()
        ]
        if not chosen:
            return (None,) * (4 + _TENSORS + _OPTIONS)
        leaves = [t for t in views if t is not None]
        second = torch.autograd.grad(
            [f for f, _ in chosen], leaves, [o for _, o in chosen], create_graph=create_graph, allow_unused=True
        )
    of_leaf = iter(second)
    gradients = [next(of_leaf) if t is not None else None for t in views]
    return (*gradients, *(None,) * _OPTIONS)


scan_backward.register_autograd(_backward_gradient, setup_context=_backward_context)
