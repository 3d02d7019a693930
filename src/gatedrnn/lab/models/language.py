"""A language model with the regularisation of the AWD-LSTM (Merity et al., 2018), for any cell and forget gate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gatedrnn import gates, inits, layers
from gatedrnn.lab.models.base import Carry, LeastMemory, ModelOptions, Network, Result, Sizes
from gatedrnn.lab.models.checks import check_known, check_types
from gatedrnn.lab.models.multi_timescale import MULTI_TIMESCALE, multi_timescale_layers

#: The cells that it can be made of.
CELLS = ("lstm", "gru", "nru")
_DROPOUTS = ("output_dropout", "layer_dropout", "input_dropout", "embedding_dropout", "weight_dropout")
_MOST = {"embedding_size": 10**6, "hidden_size": 10**6, "num_layers": 100, "memory_size": 10**6, "heads": 10**6}
_EMBEDDING_RANGE = 0.1  # as published


@dataclass(frozen=True)
class LanguageModel(ModelOptions):
    """An embedding, recurrent layers, and the embedding again to score the next word (tied weights).

    The defaults are the paper's. The last layer has as many units as the embedding, the others have hidden_size. Some
    options exist for some cells only: their default applies to these cells; for the others they are None, and setting
    them is an error.
    """

    cell: str = "lstm"
    """lstm, gru or nru."""
    embedding_size: int = 400
    """Size of the word vectors."""
    hidden_size: int = 1150
    """Number of hidden units of every layer but the last."""
    num_layers: int = 3
    """Number of stacked layers."""
    tied: bool | None = None
    """LSTM: whether the input gate is 1−f. (default: tied with the refine gate, which then has as many parameters as
    the others untied)"""
    forget_gate: str | None = None
    """lstm, gru: sigmoid, softsign, fast, iterated_fast, polynomial or refine. (default: fast)"""
    forget_init: str | None = None
    """lstm, gru: initialisation of the forget biases: constant, uniform, chrono, power_law, or multi_timescale (three
    LSTM layers, with fixed time scales of 3 and 4 words in the first, those of a power law in the second). (default:
    U(±1/√H), as all weights)"""
    memory_size: int | None = None
    """NRU: size of the memory. (default: 64)"""
    heads: int | None = None
    """NRU: number of heads. (default: 4)"""
    output_dropout: float = 0.4
    """Dropout on the output of the last layer; one mask for all steps, like all dropout here."""
    layer_dropout: float = 0.25
    """Dropout on the output of the other layers."""
    input_dropout: float = 0.4
    """Dropout on the embedded words."""
    embedding_dropout: float = 0.1
    """Probability with which a word is dropped from the vocabulary for a batch."""
    weight_dropout: float = 0.5
    """DropConnect: dropout on the recurrent weights."""
    activation_penalty: float = 2.0
    """Factor of the mean square of the last layer's output, after dropout, in the loss."""
    temporal_penalty: float = 1.0
    """Factor of the mean square of the change of the last layer's output from step to step in the loss."""
    engine: str = "auto"
    """auto, cpu or reference."""
    recompute: bool = False
    """Save memory: recompute the states in the backward pass."""

    kind = "language"
    tokens = True

    def __post_init__(self) -> None:
        defaults: dict[str, Any] = {"memory_size": 64, "heads": 4} if self.cell == "nru" else {"forget_gate": "fast"}
        for option, default in defaults.items():
            if getattr(self, option) is None:
                object.__setattr__(self, option, default)
        if self.tied is None and self.cell == "lstm":
            object.__setattr__(self, "tied", self.forget_gate == "refine")
        if self.tied is False and self.cell != "lstm":  # not tied, as always
            object.__setattr__(self, "tied", None)

    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""
        check_types(self)
        check_known("cell", self.cell, CELLS)
        having: dict[str, tuple[str, ...]] = {"tied": ("lstm",), "memory_size": ("nru",), "heads": ("nru",)}
        having |= {"forget_gate": ("lstm", "gru"), "forget_init": ("lstm", "gru")}
        for option, cells in having.items():
            value = getattr(self, option)
            if value is not None and value is not False and self.cell not in cells:
                raise ValueError(f"{option} is for {', '.join(cells)}, not for the cell {self.cell}, got {value}")
        for option, most in _MOST.items():
            value = getattr(self, option)
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"{option} must be between 1 and {most}, got {value}")
        for option in _DROPOUTS:
            if not 0 <= getattr(self, option) < 1:
                raise ValueError(f"{option} must be at least 0 and below 1, got {getattr(self, option)}")
        for option in ("activation_penalty", "temporal_penalty"):
            if not 0 <= getattr(self, option) < math.inf:
                raise ValueError(f"{option} must be 0 or a positive number, got {getattr(self, option)}")
        if self.forget_gate is not None:
            check_known("forget_gate", self.forget_gate, gates.GATES)
        if self.forget_init is not None:
            check_known("forget_init", self.forget_init, (*inits.INITS, MULTI_TIMESCALE))
            if self.forget_init == MULTI_TIMESCALE and (self.cell != "lstm" or self.num_layers != 3):
                raise ValueError(f"forget_init {MULTI_TIMESCALE} is for three layers of the cell lstm")
            if self.forget_init in inits.INITS:
                smallest = inits.INITS[self.forget_init].smallest_size
                for option in ("hidden_size", "embedding_size"):
                    if getattr(self, option) < smallest:
                        raise ValueError(
                            f"{option} must be at least {smallest} for {self.forget_init} biases, "
                            f"got {getattr(self, option)}"
                        )
        self.layers(t_max=3.0, device="meta")  # the layers' own checks: engine, memory_size and heads

    def least_memory(self, input_size: int) -> LeastMemory:
        weights = sum(p.numel() for layer in self.layers(t_max=3.0, device="meta") for p in layer.parameters())
        return LeastMemory(
            f"hidden_size {self.hidden_size}, embedding_size {self.embedding_size} and num_layers {self.num_layers}",
            weights + input_size * (self.embedding_size + 1),
            sum(self._sizes[1:]),
        )

    @property
    def cost(self) -> float:
        return float(self.embedding_size + self.hidden_size * self.num_layers)

    @property
    def needs_t_max(self) -> bool:
        return self.forget_init == "chrono"

    def build(self, sizes: Sizes, device: torch.device | str | None = None) -> LanguageNetwork:
        return LanguageNetwork(self, sizes, device)

    def layers(self, t_max: float, device: torch.device | str | None) -> list[layers.RecurrentLayer]:
        """The recurrent layers, their parameters as the library draws them. ``t_max`` is for chrono initialisation."""
        options: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("tied", "forget_gate", "memory_size", "heads")
            if getattr(self, name) is not None
        }
        options |= {name: getattr(self, name) for name in ("weight_dropout", "engine", "recompute")}
        if self.forget_init in inits.INITS:
            init: Any = inits.INITS[self.forget_init]
            options["forget_init"] = init(t_max) if init is inits.Chrono else init()
        kind: Any = layers.LAYERS[self.cell]

        def layer(place: int, **more: Any) -> layers.RecurrentLayer:
            made: layers.RecurrentLayer = kind(*self._sizes[place : place + 2], device=device, **{**options, **more})
            return made

        if self.forget_init == MULTI_TIMESCALE:
            return multi_timescale_layers(layer)
        return [layer(place) for place in range(self.num_layers)]

    @property
    def _sizes(self) -> list[int]:
        """Of the embedding, and of each layer."""
        return [self.embedding_size, *[self.hidden_size] * (self.num_layers - 1), self.embedding_size]


class LanguageNetwork(Network):
    """Words (T, B) to the scores of the next word (T, B, V)."""

    def __init__(self, options: LanguageModel, sizes: Sizes, device: torch.device | str | None) -> None:
        super().__init__()
        self.options, self.sizes = options, sizes
        self.embedding = nn.Embedding(sizes.input_size, options.embedding_size, device=device)
        self.rnns = nn.ModuleList(options.layers(sizes.t_max, device))
        self.bias = nn.Parameter(torch.zeros(sizes.output_size, device=device))
        nn.init.uniform_(self.embedding.weight, -_EMBEDDING_RANGE, _EMBEDDING_RANGE)

    @property
    def layers(self) -> Mapping[str, layers.RecurrentLayer]:
        return {f"rnns.{place}.": layer for place, layer in enumerate(self.rnns)}  # type: ignore[misc]

    def forward(self, x: Tensor, carry: Carry = None, lengths: Tensor | None = None) -> Result:
        options = self.options
        embedded: Tensor = self.embedding(x)
        if self.training and options.embedding_dropout:
            embedded = embedded * self._mask((self.sizes.input_size, 1), options.embedding_dropout, embedded)[x]
        given = self._dropped(embedded, options.input_dropout)
        states: list[Tensor] = []
        for place, (layer, state) in enumerate(zip(self.rnns, self._states(carry), strict=True)):
            raw, after = layer(given, state, lengths=lengths)
            states += after if isinstance(after, tuple) else (after,)
            last = place == len(self.rnns) - 1
            given = self._dropped(raw, options.output_dropout if last else options.layer_dropout)
        # The embedding scores the words too: its row times the output.
        scores = F.linear(given, self.embedding.weight, self.bias)
        return Result(scores, tuple(states), self._penalty(raw, given) if self.training else None)

    def _penalty(self, raw: Tensor, dropped: Tensor) -> Tensor:
        penalty = self.options.activation_penalty * dropped.square().mean()
        if len(raw) > 1:
            penalty = penalty + self.options.temporal_penalty * (raw[1:] - raw[:-1]).square().mean()
        return penalty

    def _dropped(self, x: Tensor, probability: float) -> Tensor:
        """Locked dropout: one mask (B, H) for all steps of (T, B, H)."""
        if not (self.training and probability):
            return x
        return x * self._mask(x.shape[1:], probability, x)

    @staticmethod
    def _mask(shape: Sequence[int], probability: float, like: Tensor) -> Tensor:
        return (
            torch.empty(shape, dtype=like.dtype, device=like.device)
            .bernoulli_(1.0 - probability)
            .div_(1.0 - probability)
        )

    def _states(self, carry: Carry) -> list[Any]:
        """The state of each layer, as the layer takes it."""
        if carry is None:
            return [None] * len(self.rnns)
        each = len(carry) // len(self.rnns)
        parts = [carry[place : place + each] for place in range(0, len(carry), each)]
        return [part if each > 1 else part[0] for part in parts]
