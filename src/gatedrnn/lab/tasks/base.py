"""What a task is: fresh batches from a generator, a loss, and what is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor


class Task(ABC):
    """A task never sees a model. Tasks are frozen dataclasses; their fields are the options.

    The head of a model is applied to the last ``last`` outputs of its layer, which gives (last, B, output_size).
    """

    name: ClassVar[str]
    input_size: ClassVar[int]
    output_size: ClassVar[int]
    #: How many of the last steps the head reads.
    last: ClassVar[int]
    #: What is measured besides the loss, and whether less of it is better.
    metric: ClassVar[str]
    lower_is_better: ClassVar[bool]

    @property
    @abstractmethod
    def steps(self) -> int:
        """The length T of an input."""

    @property
    @abstractmethod
    def t_max(self) -> float:
        """The longest dependency, which chrono initialisation asks for."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""

    @abstractmethod
    def batch(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A fresh batch from the generator: input (T, B, input_size) and target."""

    @abstractmethod
    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean loss of the head's output (last, B, output_size)."""

    @abstractmethod
    def measure(self, output: Tensor, target: Tensor) -> dict[str, float]:
        """The loss and the metric by their names."""


def check_length(length: int) -> None:
    if length < 2:
        raise ValueError(f"length must be at least 2, got {length}")
