"""Where batches come from: the training stream of a task, and the splits on which it is evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """The data of one update or of one step of an evaluation."""

    #: (T, B, input_size), or (T, B) of tokens.
    input: Tensor
    #: As the task's loss wants it; the batch is its second dimension.
    target: Tensor
    #: (B,) where rows are shorter than T.
    lengths: Tensor | None = None
    #: Whether the state continues from the previous batch, row by row.
    continues: bool = False
    #: Factor on the learning rate, for batches of varying length.
    rate: float = 1.0

    def rows(self, chosen: Tensor) -> Batch:
        """Some of its sequences, by number."""
        lengths = None if self.lengths is None else self.lengths[chosen]
        return replace(self, input=self.input[:, chosen], target=self.target[:, chosen], lengths=lengths)


def evenly(count: int, rows: int) -> Tensor:
    """At most ``rows`` of the numbers below ``count``, evenly spaced."""
    rows = min(rows, count)
    return torch.arange(rows) * count // rows


class Stream(ABC):
    """Batches for training, one after the other without end. Its position is saved, and exact."""

    #: How many batches an epoch has; None where there are no epochs.
    updates_an_epoch: int | None = None
    #: How many samples an epoch has, where the stream knows. A run continues with as many.
    samples_an_epoch: int | None = None
    #: Whether a batch may continue the one before.
    carries: bool = False

    @abstractmethod
    def next(self) -> Batch:
        """The next batch."""

    @abstractmethod
    def position(self) -> dict[str, Tensor]:
        """What :meth:`seek` needs to come back to this place. The names begin with "batches"."""

    @abstractmethod
    def seek(self, position: dict[str, Tensor]) -> None:
        """Go to a place returned by :meth:`position`."""


class Split(ABC):
    """Batches for evaluation, the same each time."""

    #: Samples that do not fit into the rows of the batches and are left out.
    dropped: int = 0

    @abstractmethod
    def batches(self, rows: int) -> Iterator[Batch]:
        """All of it, in order, at most about ``rows`` sequences at a time."""

    def some(self, rows: int) -> Batch:
        """At most about ``rows`` sequences, from all over it; its first batch where one continues another."""
        return next(self.batches(rows))


class Fresh(Stream):
    """Batches drawn from a generator of its own: no sequence is seen twice."""

    def __init__(self, draw: Callable[[int, torch.Generator], Batch], batch_size: int, seed: int) -> None:
        self._draw, self._size = draw, batch_size
        self._generator = torch.Generator().manual_seed(seed)

    def next(self) -> Batch:
        return self._draw(self._size, self._generator)

    def position(self) -> dict[str, Tensor]:
        return {"batches": self._generator.get_state()}

    def seek(self, position: dict[str, Tensor]) -> None:
        self._generator.set_state(position["batches"])


class Epochs(Stream):
    """A finite set of samples in a new random order each epoch. The last batch of an epoch may be smaller.

    ``take`` makes the batch of some samples by their numbers.
    """

    def __init__(self, samples: int, take: Callable[[Tensor], Batch], batch_size: int, seed: int) -> None:
        if samples < 1:
            raise ValueError("the training set is empty")
        self.samples_an_epoch = self._samples = samples
        self._take, self._size = take, batch_size
        self.updates_an_epoch = -(-samples // batch_size)
        self._generator = torch.Generator().manual_seed(seed)
        self._shuffle()

    def next(self) -> Batch:
        if self._offset >= self._samples:
            self._shuffle()
        chosen = self._order[self._offset : self._offset + self._size]
        self._offset += self._size
        return self._take(chosen)

    def position(self) -> dict[str, Tensor]:
        return {"batches": self._begin, "batches.offset": torch.tensor(self._offset)}

    def seek(self, position: dict[str, Tensor]) -> None:
        self._generator.set_state(position["batches"])
        self._shuffle()
        self._offset = int(position["batches.offset"])

    def _shuffle(self) -> None:
        self._begin = self._generator.get_state()  # the order follows from it, and so need not be saved
        self._order = torch.randperm(self._samples, generator=self._generator)
        self._offset = 0


class Drawn(Split):
    """One large batch, drawn once."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def batches(self, rows: int) -> Iterator[Batch]:
        for x, target in zip(self.batch.input.split(rows, 1), self.batch.target.split(rows, 1), strict=True):
            yield Batch(x, target)

    def some(self, rows: int) -> Batch:
        return self.batch.rows(evenly(self.batch.input.shape[1], rows))


class Samples(Split):
    """A finite set of samples in order; ``take`` as in :class:`Epochs`."""

    def __init__(self, samples: int, take: Callable[[Tensor], Batch]) -> None:
        if samples < 1:
            raise ValueError("the split is empty")
        self._samples, self._take = samples, take

    def batches(self, rows: int) -> Iterator[Batch]:
        for chosen in torch.arange(self._samples).split(rows):
            yield self._take(chosen)

    def some(self, rows: int) -> Batch:
        return self._take(evenly(self._samples, rows))
