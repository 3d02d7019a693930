"""Gradients along a long sequence and saturation of the forget gates, recorded during training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.models import Network
from gatedrnn.lab.tasks import Batch, Task
from gatedrnn.lab.training.evaluation import autocast, evaluating, wide
from gatedrnn.lab.training.options import Training

#: The number of equal parts into which the sequence is divided.
PARTS = 16
#: A gate counts as saturated where 1−f is below this.
SATURATED = 1e-4
_MOST_VALUES = 2**22  # of one gate: more would add little, and they are kept for the backward pass


def stability(network: Network, task: Task, training: Training, batch: Batch) -> dict[str, dict[str, Any]]:
    """For each layer, on some sequences of a batch outside training: the share of forget gates that are ``saturated``,
    and the ``gradient_norms`` of the loss by its input over the parts of the sequence, from the first to the last.

    Norms belong to the input of a stack of layers, and stand with its first. Nothing is drawn and no parameter's
    gradient is touched: training is the same to the bit.
    """
    batch = _some(batch, max(layer.hidden_size for layer in network.layers.values()))
    target = batch.target.to(training.device)
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
            loss = task.loss(wide(result.output), target)
            gradients = torch.autograd.grad(loss, list(inputs.values()))
    finally:
        for hook in hooks:
            hook.remove()

    found: dict[str, dict[str, Any]] = {}
    for (prefix, x), gradient in zip(inputs.items(), gradients, strict=True):
        layer = network.layers[prefix]
        keys = list(layer.weights_by_layer())
        steps = gradient.transpose(0, 1) if layer.batch_first else gradient
        norms = [float(torch.linalg.vector_norm(part.double())) for part in steps.tensor_split(PARTS)]
        found[prefix + keys[0]] = {"gradient_norms": norms}
        if layer.cell.takes_gate:
            with evaluating(network):
                shares = _saturated(layer, x.detach(), batch.lengths)
            for key, share in zip(keys, shares, strict=True):
                found.setdefault(prefix + key, {})["saturated"] = share
    return found


def _some(batch: Batch, hidden_size: int) -> Batch:
    """As many sequences of it as are enough."""
    rows = max(1, _MOST_VALUES // (len(batch.input) * hidden_size))
    lengths = None if batch.lengths is None else batch.lengths[:rows]
    return Batch(batch.input[:, :rows], batch.target[:, :rows], lengths)


@torch.no_grad()
def _saturated(layer: Any, x: Tensor, lengths: Tensor | None) -> list[float]:
    forget = layer(x, lengths=lengths, return_states="gates")[2]["forget"]
    if lengths is not None:
        within = torch.arange(len(x), device=x.device).unsqueeze(-1) < lengths.to(x.device)
        forget = forget[:, within]
    return [float(share) for share in ((1 - forget.float()) < SATURATED).flatten(1).double().mean(1)]
