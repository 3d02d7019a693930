"""Gradients along a long sequence and saturation of the forget gates, recorded during training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.models import Network
from gatedrnn.lab.tasks import Batch, Task
from gatedrnn.lab.tasks.streams import evenly
from gatedrnn.lab.training.evaluation import autocast, evaluating, wide
from gatedrnn.lab.training.options import Training

#: The number of equal parts into which the sequence is divided.
PARTS = 16
#: A gate counts as saturated where 1−f is below this.
SATURATED = 1e-4
_MOST_VALUES = 2**24  # of one gate at a time, 64 MB: they are kept for the backward pass


def stability(network: Network, task: Task, training: Training, batch: Batch) -> dict[str, dict[str, Any]]:
    """For each layer, on as many sequences of a batch outside training as a training batch has: the share of forget
    gates that are ``saturated``, and the ``gradient_norms`` of the loss by its input over the parts of the sequence,
    from the first to the last.

    Norms belong to the input of a stack of layers, and stand with its first. Nothing is drawn and no parameter's
    gradient is touched: training is the same to the bit.
    """
    batch = batch.rows(evenly(batch.input.shape[1], training.batch_size))
    steps, rows = batch.input.shape[:2]
    widest = max(layer.hidden_size for layer in network.layers.values())
    squares: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for chosen in torch.arange(rows).split(max(1, _MOST_VALUES // (steps * widest))):
        piece = batch.rows(chosen)
        inputs, gradients = _gradients(network, task, training, piece)
        for prefix, x in inputs.items():
            layer = network.layers[prefix]
            # The loss is a mean over sequences: a piece has its share in that of the batch.
            gradient = len(chosen) / rows * gradients[prefix].double()
            along = gradient.transpose(0, 1) if layer.batch_first else gradient
            _add(squares, prefix, torch.stack([part.square().sum() for part in along.tensor_split(PARTS)]))
            if layer.cell.takes_gate:
                with evaluating(network):
                    _add(counts, prefix, _saturated(layer, wide(x), piece.lengths))

    found: dict[str, dict[str, Any]] = {}
    for prefix, sums in squares.items():
        keys = list(network.layers[prefix].weights_by_layer())
        found[prefix + keys[0]] = {"gradient_norms": sums.sqrt().tolist()}
        if prefix in counts:
            for key, (saturated, gates) in zip(keys, counts[prefix].tolist(), strict=True):
                found.setdefault(prefix + key, {})["saturated"] = saturated / gates
    return found


def _gradients(
    network: Network, task: Task, training: Training, batch: Batch
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What reaches each stack of layers, and the gradient of the loss by it."""
    inputs: dict[str, Tensor] = {}

    def watch(prefix: str) -> Any:
        def replaced(layer: object, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            x = arguments[0]
            inputs[prefix] = x if x.requires_grad else x.detach().requires_grad_()
            return (inputs[prefix], *arguments[1:])

        return replaced

    hooks = [layer.register_forward_pre_hook(watch(prefix)) for prefix, layer in network.layers.items()]
    try:
        with evaluating(network), torch.enable_grad():
            with autocast(training):
                result = network(batch.input.to(training.device), None, batch.lengths)
            loss = task.loss(wide(result.output), batch.target.to(training.device))
            gradients = torch.autograd.grad(loss, list(inputs.values()))
    finally:
        for hook in hooks:
            hook.remove()
    return {prefix: x.detach() for prefix, x in inputs.items()}, dict(zip(inputs, gradients, strict=True))


@torch.no_grad()
def _saturated(layer: Any, x: Tensor, lengths: Tensor | None) -> Tensor:
    """For each layer of the stack, how many forget gates are saturated and how many there are. Without autocast: in 16
    bits, 1−f would be 0 long before."""
    forget = layer(x, lengths=lengths, return_states="gates")[2]["forget"]
    if lengths is not None:
        within = torch.arange(len(x), device=x.device).unsqueeze(-1) < lengths.to(x.device)
        forget = forget[:, within]
    return torch.tensor([[int(((1 - f) < SATURATED).sum()), f.numel()] for f in forget])


def _add(sums: dict[str, Tensor], key: str, more: Tensor) -> None:
    sums[key] = sums[key] + more if key in sums else more
