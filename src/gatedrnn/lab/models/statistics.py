"""Numbers that describe a layer: its time scales, and the values that its gates take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.models.base import Network
from gatedrnn.layers import RecurrentLayer, time_scales

_QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
_MOST_VALUES = 2_000_000  # measured per gate: more would add little


def spread(values: Tensor) -> dict[str, Any]:
    """Mean, standard deviation (of the values themselves: divided by n, not n−1) and quantiles.

    Of infinite values there are quantiles, and a mean, which is infinite; the standard deviation is not a number.
    """
    values = values.detach().flatten().to("cpu", torch.float64)
    levels = torch.tensor([float(level) for level in _QUANTILES], dtype=torch.float64)
    quantiles = torch.quantile(values, levels).tolist()
    if values.isinf().any():
        # Interpolation with an infinite value gives NaN: use the nearest value instead.
        nearest = torch.quantile(values, levels, interpolation="nearest").tolist()
        quantiles = [near if math.isnan(value) else value for value, near in zip(quantiles, nearest, strict=True)]
    return {
        "mean": values.mean().item(),
        "std": values.std(correction=0).item(),
        "quantiles": dict(zip(_QUANTILES, quantiles, strict=True)),
    }


def time_scale_spread(network: Network) -> dict[str, dict[str, Any]]:
    """The spread of −1/log φ(b) over the units of each layer; empty for cells without a forget gate."""
    return {
        prefix + key: spread(scales)
        for prefix, layer in network.layers.items()
        if layer.cell.takes_gate
        for key, scales in time_scales(layer).items()
    }


@torch.no_grad()
def gate_spread(network: Network, x: Tensor, lengths: Tensor | None = None) -> dict[str, dict[str, Any]]:
    """The spread of each gate's values over units, steps and some of the sequences x, for each layer with gates."""
    found = {}
    for prefix, layer, given, within in _layers_on(network, x, lengths):
        active = slice(None) if within is None else torch.arange(len(given)).unsqueeze(-1) < within.cpu()
        collected = layer(given, lengths=within, return_states="gates")[2]
        names = [name for name in ("forget", "input", "output") if name in collected]
        for index, key in enumerate(layer.weights_by_layer()):
            found[prefix + key] = {name: spread(collected[name][index].cpu()[active]) for name in names}
    return found


def measured_time_scale_spread(network: Network, x: Tensor, lengths: Tensor | None = None) -> dict[str, dict[str, Any]]:
    """The spread over units of −1/mean log f on some of the sequences x, and "steps": the quantiles over steps of
    −1/log f of the middle unit; for each layer with a forget gate."""
    return {
        key: {**spread(mean), "steps": dict(zip(_QUANTILES, quantiles.median(-1).values.tolist(), strict=True))}
        for key, (mean, quantiles) in measured_time_scales(network, x, lengths).items()
    }


def measured_time_scales(
    network: Network, x: Tensor, lengths: Tensor | None = None
) -> dict[str, tuple[Tensor, Tensor]]:
    """What :func:`gatedrnn.time_scales` measures on some of the sequences x, for each layer with a forget gate."""
    return {
        prefix + key: found
        for prefix, layer, given, within in _layers_on(network, x, lengths)
        for key, found in time_scales(layer, given, lengths=within).items()
    }


@torch.no_grad()
def _layers_on(
    network: Network, x: Tensor, lengths: Tensor | None
) -> Iterator[tuple[str, RecurrentLayer, Tensor, Tensor | None]]:
    """The layers with a forget gate in eval mode, with what reaches them of some of the sequences x."""
    gated = {prefix: layer for prefix, layer in network.layers.items() if layer.cell.takes_gate}
    if not gated:
        return
    widest = max(layer.hidden_size * layer.num_layers for layer in gated.values())
    rows = min(x.shape[1], max(1, _MOST_VALUES // (x.shape[0] * widest)))
    chosen = torch.arange(rows) * x.shape[1] // rows  # evenly spaced: the rows may be sorted
    x, lengths = x[:, chosen], None if lengths is None else lengths[chosen]
    training = network.training
    network.eval()  # without dropout
    try:
        for prefix, given in _inputs_of(network, gated, x, lengths).items():
            yield prefix, gated[prefix], given, lengths
    finally:
        network.train(training)


def _inputs_of(
    network: Network, gated: Mapping[str, RecurrentLayer], x: Tensor, lengths: Tensor | None
) -> dict[str, Tensor]:
    """What reaches each layer when the network reads x."""
    seen: dict[str, Tensor] = {}

    def note(prefix: str) -> Any:
        return lambda layer, arguments: seen.__setitem__(prefix, arguments[0])

    hooks = [layer.register_forward_pre_hook(note(prefix)) for prefix, layer in gated.items()]
    try:
        network(x, None, lengths)
    finally:
        for hook in hooks:
            hook.remove()
    return seen
