"""What training needs of a model: options that build a network, and a network that carries its state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from gatedrnn.layers import RecurrentLayer

#: The state of the recurrent layers after a batch; None before the first.
Carry = tuple[Tensor, ...] | None


@dataclass(frozen=True)
class Sizes:
    """The sizes of a task's network."""

    input_size: int
    output_size: int
    #: How many of the last steps the head reads; None for all.
    last: int | None
    #: The longest dependency, for chrono initialisation.
    t_max: float


class Result(NamedTuple):
    """The result of a network for a batch."""

    #: (last, B, output_size)
    output: Tensor
    carry: Carry
    #: A regulariser that is added to the loss in training.
    penalty: Tensor | None = None


class LeastMemory(NamedTuple):
    """Numbers that the weights, and the outputs of one step of one sequence, take."""

    #: The options that determine it, as text that begins with the name of one.
    options: str
    weights: int
    at_a_step: int


class Network(nn.Module, ABC):
    """A module that is trained on the batches of a task."""

    sizes: Sizes

    @property
    @abstractmethod
    def layers(self) -> Mapping[str, RecurrentLayer]:
        """Its recurrent layers, by what their names in the records begin with: "" for the only one."""

    @abstractmethod
    def forward(self, x: Tensor, carry: Carry = None, lengths: Tensor | None = None) -> Result:
        """(T, B, input_size), or (T, B) of tokens, to a Result."""


class ModelOptions(ABC):
    """Options of a model: a frozen documented dataclass."""

    #: The name in options.json.
    kind: ClassVar[str]
    #: Whether it reads words by number, and not features.
    tokens: ClassVar[bool] = False

    @abstractmethod
    def least_memory(self, input_size: int) -> LeastMemory:
        """The least that it needs on any engine."""

    @property
    @abstractmethod
    def cost(self) -> float:
        """The approximate time of a step relative to other models."""

    @property
    @abstractmethod
    def needs_t_max(self) -> bool:
        """Whether the longest dependency of the task enters its initialisation."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""

    @abstractmethod
    def build(self, sizes: Sizes, device: torch.device | str | None = None) -> Network:
        """The network with freshly drawn parameters; torch's generator is what they are drawn from."""
