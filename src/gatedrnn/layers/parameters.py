"""How the parameters of a layer start."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrize

from gatedrnn.cells import Cell, Weights
from gatedrnn.cells.base import AUX
from gatedrnn.gates import Gate
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
    """Hand the drawn weights to their parametrisations: what was drawn into is only what these computed."""
    for name, weight in weights.items():
        if parametrize.is_parametrized(module, name):
            setattr(module, name, weight.detach())


def initialise_forget_bias(cell: Cell, gate: Gate, init: ForgetInit, weights: Weights, hidden_size: int) -> None:
    """Put the draw into the first bias of the forget slice and zero into the second; likewise for the input slice."""
    drawn = init(gate, hidden_size, device=next(iter(weights.values())).device)
    with torch.no_grad():
        targets = list(zip(cell.forget_biases(weights), drawn, strict=True))
        if init.sets_input and (input_biases := cell.input_biases(weights)):
            targets.append((input_biases, init.input_bias(gate, drawn)))
        for (first, *others), value in targets:
            first.copy_(value)
            for other in others:
                other.zero_()
