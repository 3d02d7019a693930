"""A toy text with carried state and chunks of varying length, a network with a regulariser, and a toy set of images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from gatedrnn.lab.models import Carry, LayerAndHead, Model, Result, Sizes
from gatedrnn.lab.tasks import Batch, Epochs, Samples, Split, Stream, Task, class_loss, class_measures
from gatedrnn.lab.training import Run, Training

_ROWS = 4
_SEED = 3


@dataclass(frozen=True)
class ToyText(Task):
    """Predict the next of a few letters in a text that a rule makes; its vocabulary is what the text has."""

    length: int = 200

    name = "toy_text"
    metric = "perplexity"
    lower_is_better = True
    last = None
    steps = 7
    t_max = 7.0

    @cached_property
    def text(self) -> Tensor:
        generator = torch.Generator().manual_seed(_SEED)
        steps = torch.randint(1, 3, (self.length,), generator=generator)
        return steps.cumsum(0) % 5

    @property
    def input_size(self) -> int:
        return int(self.text.max()) + 1

    @property
    def output_size(self) -> int:
        return self.input_size

    def check(self) -> None:
        pass

    def stream(self, batch_size: int, seed: int) -> Stream:
        return Chunks(self._columns(self.text, batch_size), seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        return {"validation": InOrder(self._columns(self.text[:80], 2)), "test": InOrder(self._columns(self.text, 2))}

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"loss": class_measures(output, target)["loss"]}

    def summary(self, means: dict[str, float]) -> dict[str, float]:
        return {**means, "perplexity": math.exp(means["loss"])}

    def _columns(self, text: Tensor, rows: int) -> Tensor:
        whole = text[: len(text) // rows * rows]
        return F.one_hot(whole.view(rows, -1).t(), self.input_size).float()


class Chunks(Stream):
    """One pass after the other over columns (N, B, V), in chunks of random length; the first of a pass begins anew."""

    carries = True

    def __init__(self, columns: Tensor, seed: int) -> None:
        self._columns, self._generator, self._at = columns, torch.Generator().manual_seed(seed), 0
        self.updates_an_epoch = 8

    def next(self) -> Batch:
        if self._at >= len(self._columns) - 3:
            self._at = 0
        length = int(torch.randint(3, 8, (), generator=self._generator))
        begin, end = self._at, min(self._at + length, len(self._columns) - 1)
        self._at = end
        chunk = self._columns[begin : end + 1]
        return Batch(chunk[:-1], chunk[1:].argmax(-1), continues=begin > 0, rate=(end - begin) / 7)

    def position(self) -> dict[str, Tensor]:
        return {"batches": self._generator.get_state(), "batches.at": torch.tensor(self._at)}

    def seek(self, position: dict[str, Tensor]) -> None:
        self._generator.set_state(position["batches"])
        self._at = int(position["batches.at"])


class InOrder(Split):
    """Columns in chunks of ten, the state carried."""

    def __init__(self, columns: Tensor) -> None:
        self._columns = columns

    def batches(self, rows: int) -> Iterator[Batch]:
        for begin in range(0, len(self._columns) - 1, 10):
            chunk = self._columns[begin : begin + 11]
            yield Batch(chunk[:-1], chunk[1:].argmax(-1), continues=begin > 0)


@dataclass(frozen=True)
class Penalised(Model):
    """A model that adds the mean square of its outputs to the loss."""

    kind = "penalised"

    def build(self, sizes: Sizes, device: torch.device | str | None = None) -> LayerAndHead:
        plain = super().build(sizes, device)
        network = PenalisedNetwork(plain.layer, sizes, None, device)
        network.head = plain.head
        return network


class PenalisedNetwork(LayerAndHead):
    def forward(self, x: Tensor, carry: Carry = None, lengths: Tensor | None = None) -> Result:
        result = super().forward(x, carry, lengths)
        return result._replace(penalty=0.1 * result.output.square().mean())


@dataclass(frozen=True)
class ToyImages(Task):
    """Say in which half of a row the brighter pixels are; 70 rows to train on, 20 each to validate and to test."""

    name = "toy_images"
    metric = "accuracy"
    lower_is_better = False
    input_size, output_size, last, steps, t_max = 1, 2, 1, 6, 6.0

    @cached_property
    def rows(self) -> Tensor:
        return torch.rand(110, 6, 1, generator=torch.Generator().manual_seed(_SEED))

    def check(self) -> None:
        pass

    def stream(self, batch_size: int, seed: int) -> Stream:
        return Epochs(70, self.take, batch_size, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        return {
            "validation": Samples(20, lambda chosen: self.take(chosen + 70)),
            "test": Samples(20, lambda chosen: self.take(chosen + 90)),
        }

    def take(self, chosen: Tensor) -> Batch:
        rows = self.rows[chosen]
        halves = rows[:, :3].sum(1) > rows[:, 3:].sum(1)
        return Batch(rows.transpose(0, 1), halves.long().view(1, -1))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)


#: Averaging begins in the middle; a checkpoint after every update.
TEXT = Run(
    ToyText(),
    Penalised(hidden_size=6),
    Training(
        optimizer="sgd", lr=12.0, clip=0.5, batch_size=_ROWS, updates=60, evaluate_every=5, average_patience=1,
        checkpoint_seconds=0.0, threads=1,
    ),
)  # fmt: skip
#: 70 rows in batches of 8: the last batch of an epoch has 6.
IMAGES = Run(
    ToyImages(),
    Model(hidden_size=6, head_size=5),
    Training(lr=0.03, batch_size=8, epochs=5, checkpoint_seconds=0.0, threads=1),
)


def changed(run: Run, **options: object) -> Run:
    """The run with other options of training."""
    return dataclasses.replace(run, training=dataclasses.replace(run.training, **options))  # type: ignore[arg-type]
