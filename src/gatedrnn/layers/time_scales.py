"""The time scales of a layer: from its forget biases, and measured on data."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from gatedrnn import cells, engines
from gatedrnn.cells import Cell, Weights
from gatedrnn.cells.base import forget
from gatedrnn.engines import Scan
from gatedrnn.engines.afterwards import preactivations_of
from gatedrnn.gates import Gate, Sigmoid
from gatedrnn.layers.base import RecurrentLayer, StateArgument
from gatedrnn.layers.checks import checked_lengths, state_tuple
from gatedrnn.layers.convert import with_weights_of
from gatedrnn.layers.modes import eval_mode
from gatedrnn.layers.step import RecurrentStep

#: The quantiles of :class:`MeasuredTimeScales`.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class MeasuredTimeScales(NamedTuple):
    """Time scales of a layer's units on data."""

    #: (H,): −1/mean log f over all steps. After n steps of such data, e^(−n/T) of a memory is left.
    mean: Tensor
    #: (5, H): what 5, 25, 50, 75 and 95 % of the steps do not exceed in −1/log f.
    quantiles: Tensor


@overload
def time_scales(layer: nn.Module) -> dict[str, Tensor]: ...


@overload
def time_scales(
    layer: nn.Module,
    input: Tensor | PackedSequence,
    hx: StateArgument = None,
    lengths: Tensor | Sequence[int] | None = None,
) -> dict[str, MeasuredTimeScales]: ...


def time_scales(
    layer: nn.Module,
    input: Tensor | PackedSequence | None = None,
    hx: StateArgument = None,
    lengths: Tensor | Sequence[int] | None = None,
) -> Any:
    """The time scale −1/log f of every unit: the steps in which its memory falls to 1/e.

    Without input, the time scale of the forget bias, f = φ(b), while input and state contribute nothing.
    ``{"l0": tensor(H), "l0_reverse": …}``, from the sum of both biases (and the auxiliary ones). It ignores the weights
    of a trained layer: units of 3 steps by their bias may keep some data for hundreds of steps.

    With input, measured from the gate's values on it: ``{"l0": MeasuredTimeScales(mean, quantiles), …}``. mean (H,) is
    −1/mean log f over the steps, quantiles (5, H) are those of −1/log f at 5, 25, 50, 75 and 95 %. Both are exact for f
    near 1. Steps past the lengths do not count.

    The layer is evaluated as in eval mode, without its hooks. All results are detached and at least float32.

    Args:
        layer: A layer or single-step module of this library, ``torch.nn.LSTM`` or ``torch.nn.GRU``.
        input: As the layer takes it; not for single-step modules. Default: ``None``
        hx: The initial state, as the layer takes it. Default: zero
        lengths: (B,) integers, the number of steps of each row. Default: all steps

    >>> init = gatedrnn.inits.Constant(0.99)
    >>> layer = gatedrnn.LSTM(2, 3, dtype=torch.float64, forget_gate="fast", forget_init=init)
    >>> gatedrnn.time_scales(layer)["l0"]
    tensor([99.4992, 99.4992, 99.4992], dtype=torch.float64)
    >>> gatedrnn.time_scales(layer, torch.randn(50, 4, 2, dtype=torch.float64))["l0"].quantiles.shape
    torch.Size([5, 3])
    """
    if not isinstance(layer, RecurrentLayer | RecurrentStep | nn.LSTM | nn.GRU):
        raise TypeError(
            f"time_scales takes a layer or single-step module of gatedrnn, torch.nn.LSTM or torch.nn.GRU, "
            f"got {type(layer).__name__}"
        )
    with eval_mode(layer), torch.no_grad():
        return _time_scales(layer, input, hx, lengths)


def _time_scales(
    layer: RecurrentLayer | RecurrentStep | nn.LSTM | nn.GRU,
    input: Tensor | PackedSequence | None,
    hx: StateArgument,
    lengths: Tensor | Sequence[int] | None,
) -> Any:
    name = type(layer).__name__
    cell, gate, layers = _parts(layer)
    if not cell.takes_gate:
        raise ValueError(f"{name} has no forget gate, and so no time scales")
    if input is not None:
        return _measured(layer, input, hx, lengths)
    if hx is not None or lengths is not None:
        raise ValueError(f"{name}: hx and lengths need an input; pass it as well")
    if not layer.bias:
        raise ValueError(f"{name} was made with bias=False: its time scales come from the input alone; pass one")
    return {key: _of_biases(cell, gate, weights) for key, weights in layers.items()}


def _measured(
    layer: nn.Module, input: Tensor | PackedSequence, hx: StateArgument, lengths: Tensor | Sequence[int] | None
) -> dict[str, MeasuredTimeScales]:
    if isinstance(layer, RecurrentStep):
        raise TypeError(f"{type(layer).__name__} is a single step; use a layer to measure time scales on a sequence")
    if not isinstance(layer, RecurrentLayer):
        layer = with_weights_of(layer).eval()
    # Without the hooks and the own forward of a subclass, which may return something else.
    h: Tensor = RecurrentLayer.forward(layer, input, hx, lengths, return_states=True)[2]["h"]
    if not h.numel():
        raise ValueError(f"{type(layer).__name__}: time scales need at least one sequence, got an empty batch")
    if isinstance(input, PackedSequence):
        input, lengths = pad_packed_sequence(input, layer.batch_first)
    x = input if input.dim() == 3 else input.unsqueeze(1)
    if input.dim() == 2:
        h = h.unsqueeze(2)
    elif layer.batch_first:
        x, h = x.transpose(0, 1), h.transpose(1, 2)
    within = checked_lengths(type(layer).__name__, lengths, x)
    given = state_tuple(type(layer).__name__, layer.cell, hx)
    if given is None:
        given = tuple(x.new_zeros(len(h), x.shape[1], size) for size in layer.cell.state_sizes(layer.hidden_size))
    elif input.dim() == 2:
        given = tuple(s.unsqueeze(1) for s in given)
    directions, measured = (2 if layer.bidirectional else 1), {}
    for index, (key, weights) in enumerate(layer.weights_by_layer().items()):
        state = tuple(s[index] for s in given)
        reverse = index % directions == 1
        scan, output = Scan(layer.cell, layer.forget_gate, x, state, weights, within, reverse), h[index]
        native = engines.resolve(layer.engine, scan).name == "cpu"
        if native:  # which computes in float32 at least, whatever autocast says
            wide = torch.promote_types(x.dtype, torch.float32)
            weights = {name: weight.to(wide) for name, weight in weights.items()}
            scan = replace(scan, input=x.to(wide), state=tuple(s.to(wide) for s in state), weights=weights)
            output = output.to(wide)
        with torch.autocast("cpu", enabled=False) if native else nullcontext():
            a, inside = preactivations_of(scan, scan.state[0], weights, output)
            measured[key] = _summary(layer.forget_gate, forget(a), inside, x.dtype)
        if index % directions == directions - 1:
            x = torch.cat(list(h[index + 1 - directions : index + 1]), -1)
    return measured


def _summary(gate: Gate, z: tuple[Tensor, ...], inside: Tensor | None, dtype: torch.dtype) -> MeasuredTimeScales:
    """From pre-activations (T, B, H), not from f, which rounds to 1. In float64, on the CPU as with the biases."""
    rows = [part.to("cpu", torch.float64).flatten(0, 1) for part in z]
    if inside is not None:
        rows = [part[inside.flatten().cpu()] for part in rows]
    mean = 1.0 / gate.log_value(*rows).mean(0).abs()  # 1/0 is the intended inf; −1/0 would be −inf
    scales = gate.time_scale(*rows).sort(0).values
    quantiles = scales[[round(share * (len(scales) - 1)) for share in QUANTILES]]
    wide = torch.promote_types(dtype, torch.float32)
    return MeasuredTimeScales(mean.to(z[0].device, wide), quantiles.to(z[0].device, wide))


def _parts(layer: RecurrentLayer | RecurrentStep | nn.LSTM | nn.GRU) -> tuple[Cell, Gate, dict[str, Weights]]:
    if isinstance(layer, RecurrentLayer | RecurrentStep):
        return layer.cell, layer.forget_gate, layer.weights_by_layer()
    cell = cells.LSTMEquations() if isinstance(layer, nn.LSTM) else cells.GRUEquations()
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
