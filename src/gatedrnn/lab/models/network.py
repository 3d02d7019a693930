"""The module that is trained: a recurrent layer and a linear head on its last outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gatedrnn.inits import ForgetInit
from gatedrnn.lab.models.options import Model
from gatedrnn.layers import RecurrentLayer

# Their authors say how all of their parameters start.
_OWN_BIASES = ("fastgrnn", "nru")


class Network(nn.Module):
    """head(output of the layer at the last ``last`` steps): (T, B, I) to (last, B, O)."""

    def __init__(self, layer: RecurrentLayer, output_size: int, last: int) -> None:
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(layer.hidden_size, output_size)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.layer(x)
        return self.head(output[-self.last :])  # type: ignore[no-any-return]


def build(model: Model, input_size: int, output_size: int, last: int, t_max: float) -> Network:
    """Layer and head with freshly drawn parameters; torch's generator is what they are drawn from."""
    layer = model.layer(input_size, t_max)
    if model.cell not in _OWN_BIASES:
        _zero_other_biases(layer, layer.forget_init)
    if not model.trainable_bias_hh:
        for name, parameter in layer.named_parameters():
            if name.startswith("bias_hh"):
                parameter.requires_grad_(False)
    return Network(layer, output_size, last)


@torch.no_grad()
def _zero_other_biases(layer: RecurrentLayer, init: ForgetInit | None) -> None:
    """All biases but those that the initialiser sets."""
    for weights in layer.weights_by_layer().values():
        set_by_init = [bias for biases in layer.cell.forget_biases(weights) for bias in biases]
        if init is not None and init.sets_input:
            set_by_init += layer.cell.input_biases(weights)
        values = [bias.clone() for bias in set_by_init]
        for name, weight in weights.items():
            if name.startswith(("bias", "b_")):
                weight.zero_()
        for bias, value in zip(set_by_init, values, strict=True):
            bias.copy_(value)
