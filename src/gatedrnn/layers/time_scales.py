"""The time scales that a layer's forget biases stand for."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gatedrnn import cells
from gatedrnn.cells import Cell, Weights
from gatedrnn.gates import Gate, Sigmoid
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.step import RecurrentStep


def time_scales(layer: nn.Module) -> dict[str, Tensor]:
    """−1/log φ(b) of every unit: the steps in which its memory falls to 1/e when input and state contribute nothing.

    ``{"l0": tensor(H), "l0_reverse": …}``, detached, in float32 at least, from the sum of both biases (and the
    auxiliary ones). Takes the layers of this library and torch.nn.LSTM and GRU.

    >>> init = gatedrnn.inits.Constant(0.99)
    >>> layer = gatedrnn.LSTM(2, 3, dtype=torch.float64, forget_gate="fast", forget_init=init)
    >>> gatedrnn.time_scales(layer)["l0"]
    tensor([99.4992, 99.4992, 99.4992], dtype=torch.float64)
    """
    name = type(layer).__name__
    cell, gate, layers = _parts(layer)
    if not cell.takes_gate:
        raise ValueError(f"{name} has no forget gate, and so no time scales")
    if not layer.bias:
        raise ValueError(f"{name} was made with bias=False: its time scales come from the input alone")
    return {key: _of_biases(cell, gate, weights) for key, weights in layers.items()}


def _parts(layer: nn.Module) -> tuple[Cell, Gate, dict[str, Weights]]:
    if isinstance(layer, RecurrentLayer | RecurrentStep):
        return layer.cell, layer.forget_gate, layer.weights_by_layer()
    if not isinstance(layer, nn.LSTM | nn.GRU):
        raise TypeError(
            f"time_scales takes a recurrent layer of gatedrnn, torch.nn.LSTM or GRU, got {type(layer).__name__}"
        )
    cell = cells.LSTM() if isinstance(layer, nn.LSTM) else cells.GRU()
    layers: dict[str, Weights] = {}
    for names in layer._all_weights:
        key = names[0].removeprefix("weight_ih_")
        layers[key] = {name.removesuffix(f"_{key}"): getattr(layer, name) for name in names}
    return cell, Sigmoid(), layers


def _of_biases(cell: Cell, gate: Gate, weights: Weights) -> Tensor:
    # In float64: the sum of two rounded biases is exact there. On the CPU: not every device has float64.
    z = [sum(b.detach().to("cpu", torch.float64) for b in biases) for biases in cell.forget_biases(weights)]
    first = next(iter(weights.values()))
    return gate.time_scale(*z).to(first.device, torch.promote_types(first.dtype, torch.float32))
