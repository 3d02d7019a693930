"""The reference engine: the loop over time in plain PyTorch. It defines what is correct."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gatedrnn.cells import State, Weights
from gatedrnn.cells.base import wide
from gatedrnn.engines.interface import Engine, Scan, ScanResult
from gatedrnn.engines.packing import packed, padded_scan


class ReferenceEngine(Engine):
    """Serves every cell, gate, dtype and device, with derivatives of any order."""

    name = "reference"

    def refuses(self, scan: Scan) -> str | None:
        return None

    def describe(self, scan: Scan) -> str:
        return "the loop over time in plain PyTorch"

    def run(self, scan: Scan) -> ScanResult:
        if scan.batch_sizes is not None:
            scan, places = padded_scan(scan)
            result = self.run(scan)
            return result._replace(output=packed(result.output, places))
        if scan.recompute:
            _refuse_transforms(scan)
        x, active = steps_in_order(scan)
        steps = len(x)
        block = _Block(scan, scan.cell.prepare(scan.weights))
        state: State = tuple(wide(s) for s in scan.state)
        length = math.isqrt(steps - 1) + 1 if scan.recompute else steps
        pieces = []
        # split once: a slice in each round would make the backward pass cost T^1.5.
        parts = x.split(length)
        flags: Sequence[Tensor | None] = [None] * len(parts) if active is None else active.split(length)
        for x_part, active_part in zip(parts, flags, strict=True):
            arguments = (x_part, active_part, state)
            if scan.recompute:
                state, kept = checkpoint(block, *arguments, use_reentrant=False, preserve_rng_state=False)
            else:
                state, kept = block(*arguments)
            pieces.append(kept)

        kept = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
        return result_of(scan, state, kept, active)


def steps_in_order(scan: Scan) -> tuple[Tensor, Tensor | None]:
    """The input (T, B, I) as the loop takes it, and the mask (T, B, 1) of the steps within the lengths, if any."""
    x, active = scan.input, None
    if scan.lengths is not None:
        # shape[0], not len(): that one is a number, the same for every call of an exported graph.
        active = (torch.arange(x.shape[0], device=x.device).unsqueeze(-1) < scan.lengths).unsqueeze(-1)
        x = torch.where(active, x, 0.0)  # values past the end, such as NaN, must not reach the weights
    return (_reversed(x, scan.lengths) if scan.reverse else x), active


def result_of(scan: Scan, state: State, kept: dict[str, Tensor], active: Tensor | None) -> ScanResult:
    """The result of a scan from the last state and what the loop kept of its steps, "h" at least."""
    if active is not None:
        kept = {name: torch.where(active, sequence, 0.0) for name, sequence in kept.items()}
    if scan.reverse:
        kept = {name: _reversed(sequence, scan.lengths) for name, sequence in kept.items()}
    output = kept["h"].to(scan.input.dtype)
    dtypes = [s.dtype for s in scan.state]
    collected = {name: sequence.to(dtypes[-1]) for name, sequence in kept.items()} if scan.collect else {}
    return ScanResult(output, tuple(s.to(dtype) for s, dtype in zip(state, dtypes, strict=True)), collected)


def step_of(
    scan: Scan, w: Weights, x: tuple[Tensor, ...], active: Tensor | None, state: State
) -> tuple[State, dict[str, Tensor]]:
    """One step: the next state, and what is kept of it."""
    a = scan.cell.preactivations(w, x, state)
    new = scan.cell.update(scan.gate, w, a, state)
    if active is not None:
        new = tuple(torch.where(active, after, before) for after, before in zip(new, state, strict=True))
    kept = dict(zip(scan.cell.states, new, strict=True)) if scan.collect else {"h": new[0]}
    return new, kept | (scan.cell.gates(scan.gate, a) if scan.collect == "gates" else {})


class _Block:
    """Some steps of a scan, as a function that can be run again in the backward pass."""

    def __init__(self, scan: Scan, w: Weights) -> None:
        self.scan, self.w = scan, w

    def __call__(self, x: Tensor, active: Tensor | None, state: State) -> tuple[State, dict[str, Tensor]]:
        kept: dict[str, list[Tensor]] = {}
        # unbind once: x[t] inside the loop would make the backward pass quadratic in T.
        projected = [part.unbind() for part in self.scan.cell.project(self.w, x)]
        flags: Sequence[Tensor | None] = [None] * len(x) if active is None else active.unbind()
        for x_t, active_t in zip(zip(*projected, strict=True), flags, strict=True):
            state, step = step_of(self.scan, self.w, x_t, active_t, state)
            for name, value in step.items():
                kept.setdefault(name, []).append(value)
        return state, {name: torch.stack(values) for name, values in kept.items()}


def _refuse_transforms(scan: Scan) -> None:
    """Some turn off what `checkpoint` is made of; after vmap it would compute again without vmap."""
    if torch.compiler.is_compiling():
        return
    interpreter = torch._C._functorch.peek_interpreter_stack()
    vmapped = interpreter is not None and interpreter.key() == torch._C._functorch.TransformType.Vmap
    tensors = (scan.input, *scan.state, *scan.weights.values())
    recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() or (vmapped and recorded):
        raise RuntimeError(
            "recompute=True does not work inside torch.func's grad, vjp, jacrev and hessian, or inside vmap with "
            "gradients; use recompute=False there"
        )


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    """x with the steps of each row in reverse order, steps past the length left in place."""
    if lengths is None:
        return x.flip(0)
    t = torch.arange(x.shape[0], device=x.device).unsqueeze(-1)  # (T, 1)
    index = torch.where(t < lengths, lengths - 1 - t, t)
    return x.gather(0, index.unsqueeze(-1).expand(x.shape))
