"""What a task is: a stream of batches for training, splits for evaluation, a loss, and what is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from gatedrnn.lab.tasks.streams import Batch, Drawn, Fresh, Split, Stream

#: The seed of the evaluation set of fresh sequences: the same for every run, and used by no run. (The generator uses 32
#: bits of it.)
EVALUATION_SEED = 2**32 - 1


class Task(ABC):
    """A task never sees a model. Tasks are frozen dataclasses; their fields are the options.

    A task with data opens it once, when one of its properties or methods first needs it.
    """

    name: ClassVar[str]
    #: What is measured besides the loss, whether less of it is better, its unit, and the axis that shows it best.
    metric: ClassVar[str]
    lower_is_better: ClassVar[bool]
    metric_unit: ClassVar[str] = ""
    metric_scale: ClassVar[str] = "linear"
    #: Whether it draws fresh batches without end, so that there are no epochs.
    endless: ClassVar[bool] = False
    #: Whether the input is words by number, (T, B), and not features.
    tokens: ClassVar[bool] = False
    #: How many samples in a row, about, are independent of the next: sums over such blocks of the test split are
    #: recorded, for intervals. None where every sample is.
    block: ClassVar[int | None] = None
    #: Whether its runs record how gradients travel, by default: for very long sequences.
    monitored: ClassVar[bool] = False

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Features of the input at a step."""

    @property
    @abstractmethod
    def output_size(self) -> int:
        """Outputs of the head at a step."""

    @property
    @abstractmethod
    def last(self) -> int | None:
        """How many of the last steps the head reads; None for all."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The length T of an input, the longest where they vary."""

    @property
    @abstractmethod
    def t_max(self) -> float:
        """The longest dependency, for chrono initialisation."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed. Data is not opened."""

    def open(self, say: Callable[[str], None]) -> None:  # noqa: B027 - most tasks have nothing to open
        """Open its data now; ``say`` is called with the progress if that takes long."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be noted in the record about its data."""
        return ()

    @abstractmethod
    def stream(self, batch_size: int, seed: int) -> Stream:
        """The batches for training."""

    @abstractmethod
    def splits(self, size: int | None) -> Mapping[str, Split]:
        """What it is evaluated on: "validation", and "test" if there is one.

        ``size`` is for tasks that draw their evaluation set: the number of its sequences.
        """

    @classmethod
    def measured(cls) -> dict[str, str | bool | None]:
        """What its metric is, as the records say it."""
        return {
            "metric": cls.metric,
            "lower_is_better": cls.lower_is_better,
            "metric_unit": cls.metric_unit or None,
            "metric_scale": cls.metric_scale,
        }

    @abstractmethod
    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean loss of the head's output (last, B, output_size)."""

    @abstractmethod
    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        """The loss and the metric of each sample. Evaluation takes the mean over all samples of a split."""

    def summary(self, means: dict[str, float]) -> dict[str, Any]:
        """What is reported of the means; for a metric that is a function of a mean, such as a perplexity."""
        return means

    def fingerprint(self) -> dict[str, str]:
        """Digests of its data by name, where the data set is not the same everywhere. A run continues with the same."""
        return {}


class FreshTask(Task):
    """A task that draws fresh batches."""

    endless = True

    @abstractmethod
    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """A fresh batch from the generator: input (T, B, input_size) and target."""

    def stream(self, batch_size: int, seed: int) -> Stream:
        return Fresh(self.batch, batch_size, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        assert size is not None
        return {"validation": Drawn(self.batch(size, torch.Generator().manual_seed(EVALUATION_SEED)))}


_LONGEST = 10**9


def check_length(length: int) -> None:
    """Raise ValueError for an invalid number of steps."""
    if not 2 <= length <= _LONGEST:
        raise ValueError(f"length must be between 2 and {_LONGEST}, got {length}")
