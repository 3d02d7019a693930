"""Numbers that describe a layer: its time scales, and the values that its gates take."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from gatedrnn.layers import RecurrentLayer, time_scales

_QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
_MOST_VALUES = 2_000_000  # measured per gate: more would not tell more


def spread(values: Tensor) -> dict[str, Any]:
    """Mean, standard deviation (of the values themselves: divided by n, not n−1) and quantiles.

    Of infinite values there are quantiles, and a mean, which is infinite; the standard deviation is not a number.
    """
    values = values.detach().flatten().to("cpu", torch.float64)
    levels = torch.tensor([float(level) for level in _QUANTILES], dtype=torch.float64)
    quantiles = torch.quantile(values, levels).tolist()
    if values.isinf().any():
        # Interpolation gives NaN beside an infinite value: there, the nearest value in its place.
        nearest = torch.quantile(values, levels, interpolation="nearest").tolist()
        quantiles = [near if math.isnan(value) else value for value, near in zip(quantiles, nearest, strict=True)]
    return {
        "mean": values.mean().item(),
        "std": values.std(correction=0).item(),
        "quantiles": dict(zip(_QUANTILES, quantiles, strict=True)),
    }


def time_scale_spread(layer: RecurrentLayer) -> dict[str, dict[str, Any]] | None:
    """The spread of −1/log φ(b) over the units of each layer; None for a cell without a forget gate."""
    if not layer.cell.takes_gate:
        return None
    return {key: spread(scales) for key, scales in time_scales(layer).items()}


@torch.no_grad()
def gate_spread(layer: RecurrentLayer, x: Tensor) -> dict[str, dict[str, Any]] | None:
    """The spread of each gate's values over units, steps and some of the sequences x (T, B, I), for each layer."""
    if not layer.cell.takes_gate:
        return None
    rows = max(1, _MOST_VALUES // (x.shape[0] * layer.hidden_size * layer.num_layers))
    collected = layer(x[:, :rows], return_states="gates")[2]
    names = [name for name in ("forget", "input", "output") if name in collected]
    keys = list(layer.weights_by_layer())
    return {key: {name: spread(collected[name][index]) for name in names} for index, key in enumerate(keys)}
