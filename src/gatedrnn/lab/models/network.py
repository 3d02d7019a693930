"""The module that is trained: a recurrent layer, maybe an encoder before it, and a head on what is read of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gatedrnn.lab.models.base import Carry, Network, Result, Sizes
from gatedrnn.layers import RecurrentLayer

#: What the head reads of the layer's outputs: the last steps that the task asks for, or the mean over all steps.
READINGS = ("last", "mean")


class LayerAndHead(Network):
    """head(read(layer(encoder(x)))): (T, B, I) to (last, B, O).

    The encoder is linear, and there only with an ``encoder_size``. The head is linear, or two linear layers with a ReLU
    and ``head_size`` values between them.
    """

    def __init__(
        self,
        layer: RecurrentLayer,
        sizes: Sizes,
        head_size: int | None,
        device: torch.device | str | None,
        encoder_size: int | None = None,
        read: str = "last",
    ) -> None:
        super().__init__()
        if read == "mean" and sizes.last != 1:
            steps = "all steps" if sizes.last is None else f"each of the last {sizes.last} steps"
            raise ValueError(f"read mean is for tasks with one answer at the end; this one has answers at {steps}")
        self.encoder = (
            nn.Identity() if encoder_size is None else nn.Linear(sizes.input_size, encoder_size, device=device)
        )
        self.layer = layer
        self.sizes = sizes
        self.read = read
        width = layer.hidden_size
        self.head: nn.Module
        if head_size is None:
            self.head = nn.Linear(width, sizes.output_size, device=device)
        else:
            self.head = nn.Sequential(
                nn.Linear(width, head_size, device=device),
                nn.ReLU(),
                nn.Linear(head_size, sizes.output_size, device=device),
            )

    @property
    def layers(self) -> Mapping[str, RecurrentLayer]:
        return {"": self.layer}

    def forward(self, x: Tensor, carry: Carry = None, lengths: Tensor | None = None) -> Result:
        state = carry if carry is None or len(carry) > 1 else carry[0]
        output, state = self.layer(self.encoder(x), state, lengths=lengths)
        states = state if isinstance(state, tuple) else (state,)
        if self.read == "mean":
            read = _mean(output, lengths)
        elif self.sizes.last == 1:
            # The same numbers as the last output. The gradient of a slice of the outputs is as large as all of them.
            read = states[0][-1:]
        else:
            read = _last_steps(output, self.sizes.last, lengths)
        return Result(self.head(read), states)


def _mean(output: Tensor, lengths: Tensor | None) -> Tensor:
    """Over the steps of each row (T, B, H), as one step; outputs past the length are zero."""
    if lengths is None:
        return output.mean(0, keepdim=True)
    return output.sum(0, keepdim=True) / lengths.to(output.device).unsqueeze(-1)


def _last_steps(output: Tensor, last: int | None, lengths: Tensor | None) -> Tensor:
    """The last steps of each row (T, B, H), which end at its length."""
    if last is None:
        return output
    if lengths is None:
        return output[-last:]
    steps = lengths.to(output.device) + torch.arange(-last, 0, device=output.device).unsqueeze(-1)
    return output.gather(0, steps.unsqueeze(-1).expand(-1, -1, output.shape[-1]))


def freeze_second_bias(layer: RecurrentLayer) -> None:
    """It is not trained: two summed trainable biases would move twice as far."""
    for name, parameter in layer.named_parameters():
        if name.startswith("bias_hh"):
            parameter.requires_grad_(False)


@torch.no_grad()
def zero_other_biases(layer: RecurrentLayer) -> None:
    """All biases but those that the initialiser sets."""
    init = layer.forget_init
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
