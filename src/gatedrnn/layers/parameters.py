"""How the parameters of a layer start."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from gatedrnn.cells import Cell, Weights
from gatedrnn.cells.base import AUX
from gatedrnn.gates import Gate
from gatedrnn.gates.stable import has_no_values
from gatedrnn.inits import ForgetInit


def reset(cell: Cell, gate: Gate, init: ForgetInit | None, layers: list[Weights], hidden_size: int) -> None:
    """Draw all parameters: torch's first, in torch's order, then the auxiliary gate's, then the initialiser's."""
    for auxiliary in (False, True):
        for weights in layers:
            part = {name: weight for name, weight in weights.items() if name.endswith("_" + AUX) == auxiliary}
            if part:
                cell.reset(part, gate, hidden_size)
    if init is not None:
        for weights in layers:
            initialise_forget_bias(cell, gate, init, weights, hidden_size)


def write_back(module: nn.Module, weights: Weights) -> None:
    """Hand the drawn weights to the parameters from which parametrisations, pruning and norms compute them."""
    own = module._parameters
    for name, weight in weights.items():
        if parametrize.is_parametrized(module, name):
            chain: Any = module.parametrizations[name]  # type: ignore[index]
            if all(hasattr(parametrization, "right_inverse") for parametrization in chain):
                setattr(module, name, weight.detach())
            else:  # as torch.nn's layers, which draw what the parametrisation is applied to
                with torch.no_grad():
                    chain.original.copy_(weight)
            continue
        with torch.no_grad():
            if (original := own.get(f"{name}_orig")) is not None:  # torch.nn.utils.prune and spectral_norm
                original.copy_(weight)
                weight.mul_(module._buffers.get(f"{name}_mask", 1.0))  # type: ignore[arg-type]
            elif (direction := own.get(f"{name}_v")) is not None and (norm := own.get(f"{name}_g")) is not None:
                direction.copy_(weight)  # torch.nn.utils.weight_norm, whose norm has size 1 where it was summed over
                summed = [axis for axis in range(weight.dim()) if norm.dim() == 0 or norm.shape[axis] == 1]
                norm.copy_(weight.norm(dim=summed, keepdim=norm.dim() > 0))


BEYOND_RANGE = (
    "forget biases beyond the range of their dtype are set to its largest number; their time scales are not the "
    "requested ones"
)


def set_sum(biases: Sequence[Tensor], target: Tensor, others_zero: bool) -> bool:
    """Let biases sum up to the target through the first one; the others stay as they are, or become zero. Returns
    whether the first one can have the value; if not, it has the largest of its dtype.

    One parameter may stand in both places. Then it counts twice.
    """
    first, *rest = biases
    others = [bias for bias in rest if not _is_same(bias, first)]
    for other in others if others_zero else ():
        other.zero_()
    left = target - sum(other.to(target.dtype) for other in others)
    value = left / (len(biases) - len(others))
    largest = torch.finfo(first.dtype).max
    first.copy_(value.clamp(-largest, largest))
    return has_no_values(value) or not bool((value.abs() > largest).any())


def _is_same(a: Tensor, b: Tensor) -> bool:
    if a._base is None or a._base is not b._base:
        return a is b
    return a.storage_offset() == b.storage_offset()


def initialise_forget_bias(cell: Cell, gate: Gate, init: ForgetInit, weights: Weights, hidden_size: int) -> None:
    """Put the draw into the first bias of the forget slice and zero into the second; likewise for the input slice."""
    drawn = init(gate, hidden_size, device=next(iter(weights.values())).device)
    with torch.no_grad():
        targets = list(zip(cell.forget_biases(weights), drawn, strict=True))
        if init.sets_input and (input_biases := cell.input_biases(weights)):
            targets.append((input_biases, init.input_bias(gate, drawn)))
        if not all([set_sum(biases, value, others_zero=True) for biases, value in targets]):  # noqa: C419  # all are set
            warnings.warn(BEYOND_RANGE, stacklevel=2)
