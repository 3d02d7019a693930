"""The options of a model, and its layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from gatedrnn import gates, inits, layers
from gatedrnn.lab.fields import added
from gatedrnn.lab.models.base import LeastMemory, ModelOptions, Sizes
from gatedrnn.lab.models.checks import check_known, check_types
from gatedrnn.lab.models.network import READINGS, LayerAndHead, freeze_second_bias, zero_other_biases

# The options that only some cells have, with their defaults there.
_DEFAULTS: dict[str, bool | str | int] = {
    "tied": True,
    "forget_gate": "fast",
    "forget_init": "constant",
    "memory_size": 64,
    "heads": 4,
}
_UNGATED = ("nru",)
_WITHOUT_BIAS_HH = ("nru", "minimal_rnn", "fastgrnn")
# Their authors say how all of their parameters start.
_OWN_BIASES = ("fastgrnn", "nru")
# The approximate time of a step relative to a tied LSTM on the same machine.
_SLOWER = {"nru": 1.3, "refine": 1.3, "janet": 0.7}
# No machine has the memory for more of them.
_MOST = {
    "hidden_size": 10**6,
    "num_layers": 1000,
    "memory_size": 10**6,
    "heads": 10**6,
    "head_size": 10**6,
    "encoder_size": 10**6,
}


def cells_with(option: str) -> list[str]:
    """The cells that have this option."""
    if option == "tied":
        return ["lstm"]
    if option in ("memory_size", "heads"):
        return ["nru"]
    lacking = _WITHOUT_BIAS_HH if option == "trainable_bias_hh" else _UNGATED
    return [name for name in layers.LAYERS if name not in lacking]


@dataclass(frozen=True)
class Model(ModelOptions):
    """A recurrent layer and a head, optionally with an encoder.

    The weights are drawn from U(±1/√H) and the biases are zero except the forget bias; FastGRNN and NRU are initialised
    as in their authors' code. Some options exist for some cells only: their default applies to these cells; for the
    others they are None, and setting them is an error.
    """

    cell: str = "lstm"
    """lstm, gru, janet, nru, ugrnn, minimal_rnn, fastgrnn or mgu."""
    hidden_size: int = 128
    """Number of hidden units H."""
    num_layers: int = 1
    """Number of stacked layers."""
    tied: bool | None = None
    """LSTM: whether the input gate is 1−f. (default: tied)"""
    forget_gate: str | None = None
    """sigmoid, softsign, fast, iterated_fast, polynomial or refine. Not for the NRU. (default: fast)"""
    forget_init: str | None = None
    """constant, chrono (t_max is the task's), uniform or power_law. Not for the NRU. (default: constant)"""
    trainable_bias_hh: bool = False
    """Train the second bias too. It is zero and frozen otherwise: two summed biases would make RMSprop and Adam move
    the forget bias twice as far per update."""
    memory_size: int | None = None
    """NRU: size of the memory. (default: 64)"""
    heads: int | None = None
    """NRU: number of heads. (default: 4)"""
    engine: str = "auto"
    """Engine for the loop over time: auto, cpu or reference."""
    recompute: bool = False
    """Store less for the backward pass and recompute it: less memory, up to a fifth more time on the CPU
    engine, more on the reference engine."""
    head_size: int | None = added(None, neutral=None)
    """Width of a hidden layer, with a ReLU, between the recurrent layer and the output. (default: no hidden layer)"""
    encoder_size: int | None = added(None, neutral=None)
    """Width of an encoder: a linear layer before the recurrent one. (default: no encoder)"""
    read: str = added("last", neutral="last")
    """What the head reads of the recurrent layer's outputs: last (the last steps) or mean (over all steps)."""

    kind = "recurrent"

    def __post_init__(self) -> None:
        for option, default in _DEFAULTS.items():
            has_it = self.cell in cells_with(option)
            if getattr(self, option) is None and has_it:
                object.__setattr__(self, option, default)
            if getattr(self, option) is False and not has_it:  # not tied, as always
                object.__setattr__(self, option, None)

    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""
        check_types(self)
        check_known("cell", self.cell, layers.LAYERS)
        for option in (*_DEFAULTS, "trainable_bias_hh"):
            value, having = getattr(self, option), cells_with(option)
            if value is not None and value is not False and self.cell not in having:
                raise ValueError(f"{option} is for {', '.join(having)}, not for the cell {self.cell}, got {value}")
        for option, most in _MOST.items():
            value = getattr(self, option)
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"{option} must be between 1 and {most}, got {value}")
        check_known("read", self.read, READINGS)
        if self.forget_gate is not None:
            check_known("forget_gate", self.forget_gate, gates.GATES)
        if self.forget_init is not None:
            check_known("forget_init", self.forget_init, inits.INITS)
            smallest = inits.INITS[self.forget_init].smallest_size
            if self.hidden_size < smallest:
                raise ValueError(
                    f"hidden_size must be at least {smallest} for {self.forget_init} biases, got {self.hidden_size}"
                )
        self.layer(1, t_max=3.0, device="meta")  # the layer's own checks: engine, memory_size and heads

    @property
    def cost(self) -> float:
        return self.hidden_size * _SLOWER.get(self.cell, 1.0) * _SLOWER.get(self.forget_gate or "", 1.0)

    def least_memory(self, input_size: int) -> LeastMemory:
        layer, encoder = self.layer(self.encoder_size or input_size, t_max=3.0, device="meta"), self.encoder_size or 0
        memory = "" if self.memory_size is None else f" and memory_size {self.memory_size}"
        return LeastMemory(
            f"hidden_size {self.hidden_size} with num_layers {self.num_layers}{memory}",
            encoder * (input_size + 1) + sum(parameter.numel() for parameter in layer.parameters()),
            encoder + self.num_layers * self.hidden_size,
        )

    @property
    def needs_t_max(self) -> bool:
        return self.forget_init == "chrono"

    def build(self, sizes: Sizes, device: torch.device | str | None = None) -> LayerAndHead:
        layer = self.layer(self.encoder_size or sizes.input_size, sizes.t_max, device)
        if self.cell not in _OWN_BIASES:
            zero_other_biases(layer)
        if not self.trainable_bias_hh:
            freeze_second_bias(layer)
        return LayerAndHead(layer, sizes, self.head_size, device, self.encoder_size, self.read)

    def layer(self, input_size: int, t_max: float, device: torch.device | str | None = None) -> layers.RecurrentLayer:
        """The recurrent layer, its parameters as the library draws them. ``t_max`` is for chrono initialisation."""
        options: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("tied", "forget_gate", "memory_size", "heads")
            if getattr(self, name) is not None
        }
        if self.forget_init is not None:
            init: Any = inits.INITS[self.forget_init]
            options["forget_init"] = init(t_max) if init is inits.Chrono else init()
        options |= {"num_layers": self.num_layers, "engine": self.engine, "recompute": self.recompute}
        kind: Any = layers.LAYERS[self.cell]
        layer: layers.RecurrentLayer = kind(input_size, self.hidden_size, device=device, **options)
        return layer
