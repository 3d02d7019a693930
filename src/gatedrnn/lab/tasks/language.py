"""Predict the next word of a text: Penn Treebank, WikiText-2, and custom texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gatedrnn.lab.data import Corpus, DataError, read_corpus, text_files
from gatedrnn.lab.fields import beside
from gatedrnn.lab.tasks.base import Task
from gatedrnn.lab.tasks.classification import class_loss
from gatedrnn.lab.tasks.streams import Batch, Split, Stream

#: Words by how often they occur, and the least count of each bin.
BINS = {"over 10,000": 10_000, "1,000 to 10,000": 1_000, "100 to 1,000": 100, "under 100": 0}
_ROWS = {"validation": 10, "test": 1}  # as in the published evaluation
_FILES = {"validation": "valid", "test": "test"}
_BLOCK = 1000  # words: long enough for what is far apart to be independent
# Of the chunks: their standard deviation, the least of them, and how often one is about half as long.
_SPREAD, _LEAST, _HALVED = 5.0, 5, 0.05


@dataclass(frozen=True)
class LanguageTask(Task):
    """Predict the next word. The text is cut into batch_size pieces, which are read side by side from chunk to chunk;
    the state is carried."""

    bptt: int = 70
    """Steps of a chunk: the gradient goes no further back. In training they vary around it."""
    frequencies: str = "train"
    """Where the words are counted for the perplexity by frequency: train (the training
    text) or all (all three files)."""
    words: int | None = None
    """Use only this many words of each file, for a quick test. (default: all)"""

    metric = "perplexity"
    lower_is_better = True
    metric_scale = "log"
    tokens = True
    last = None
    block = _BLOCK

    @property
    def steps(self) -> int:
        return self.bptt

    @property
    def t_max(self) -> float:
        return float(self.bptt)

    @property
    def input_size(self) -> int:
        return len(self.corpus.words)

    @property
    def output_size(self) -> int:
        return len(self.corpus.words)

    def check(self) -> None:
        if not _LEAST <= self.bptt <= 10**6:
            raise ValueError(f"bptt must be between {_LEAST} and {10**6}, got {self.bptt}")
        if self.frequencies not in ("train", "all"):
            raise ValueError(f"frequencies must be one of train, all, got {self.frequencies!r}")
        if self.words is not None and self.words < 2 * _ROWS["validation"]:
            raise ValueError(f"words must be at least {2 * _ROWS['validation']}, got {self.words}")

    def stream(self, batch_size: int, seed: int) -> Stream:
        text = self._text("train")
        if len(text) < batch_size * self.bptt:
            raise DataError(
                f"the training text has {len(text)} words, fewer than batch_size × bptt = {batch_size * self.bptt}: "
                "choose a smaller batch_size or bptt"
            )
        return Chunks(side_by_side(text, batch_size), self.bptt, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        found = {}
        for name, rows in _ROWS.items():
            text = self._text(_FILES[name])
            if len(text) < 2 * rows:
                raise DataError(f"the {name} text has {len(text)} words; it needs at least {2 * rows}")
            columns = side_by_side(text, rows)
            found[name] = InOrder(columns, self.bptt, dropped=len(text) - 1 - columns[1:].numel())
        return found

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Of each word its loss; and for each bin the losses in it, and which words they are."""
        losses = F.cross_entropy(output.flatten(0, -2), target.flatten(), reduction="none")
        bins = self._bins[target.flatten()]
        found = {"loss": losses}
        for place, name in enumerate(BINS):
            inside = bins == place
            found |= {f"loss {name}": losses * inside, f"targets {name}": inside}
        return found

    def summary(self, means: dict[str, float]) -> dict[str, Any]:
        """The perplexity, of all words and by bin; None for a bin without words."""
        shares = {name: means[f"targets {name}"] for name in BINS}
        return {
            "loss": means["loss"],
            "perplexity": _exp(means["loss"]),
            "bins": {name: _exp(means[f"loss {name}"] / share) if share else None for name, share in shares.items()},
        }

    def fingerprint(self) -> dict[str, str]:
        return self.corpus.fingerprint

    @cached_property
    def corpus(self) -> Corpus:
        """The words of the files."""
        return read_corpus(self._files())

    def _files(self) -> Mapping[str, Path]:
        raise NotImplementedError

    def _text(self, name: str) -> Tensor:
        return self.corpus.texts[name][: self.words]

    @cached_property
    def _bins(self) -> Tensor:
        """The place in BINS of each word."""
        counts = self.corpus.counts(*(["train"] if self.frequencies == "train" else self.corpus.texts))
        return (counts.unsqueeze(-1) < torch.tensor(list(BINS.values()))).sum(-1)


@dataclass(frozen=True)
class _PublishedText(LanguageTask):
    data: str | None = beside(None)
    """Folder with the data set. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    data_set: ClassVar[str]

    def _files(self) -> Mapping[str, Path]:
        return text_files(self.data_set, None if self.data is None else Path(self.data))


@dataclass(frozen=True)
class PennTreebank(_PublishedText):
    """Predict the next word of the Wall Street Journal: Penn Treebank, 929,589 words to train on, 10,000 different."""

    name = "ptb"
    data_set = "ptb"


@dataclass(frozen=True)
class WikiText2(_PublishedText):
    """Predict the next word of Wikipedia: WikiText-2, 2,088,628 words to train on, 33,278 different."""

    name = "wikitext2"
    data_set = "wikitext-2"


@dataclass(frozen=True)
class OwnText(LanguageTask):
    """Predict the next word of a custom text: three files of words separated by spaces."""

    train: str = field(kw_only=True)
    """File to train on; its words are the vocabulary."""
    valid: str = field(kw_only=True)
    """File for validation. A word that is not in the training file counts as <unk>, if the training file contains
    <unk>."""
    test: str = field(kw_only=True)
    """File for the test at the end."""

    name = "text"

    def check(self) -> None:
        for option in ("train", "valid", "test"):
            if not getattr(self, option):
                raise ValueError(f"{option} must name a file of text")
        super().check()

    def _files(self) -> Mapping[str, Path]:
        return {"train": Path(self.train), "valid": Path(self.valid), "test": Path(self.test)}


def side_by_side(text: Tensor, rows: int) -> Tensor:
    """The text in pieces of the same length, (N, rows); the last words, fewer than rows, are left out."""
    return text[: len(text) // rows * rows].view(rows, -1).t().contiguous()


class Chunks(Stream):
    """One pass after the other over columns (N, B), in chunks of random length, the state carried from one to the next.

    Lengths are drawn from N(bptt, 5), for one chunk in twenty from N(bptt/2, 5), 5 at least, and then scaled a little:
    so every pass has the same number of chunks and reads every word once.
    """

    carries = True

    def __init__(self, columns: Tensor, bptt: int, seed: int) -> None:
        self._columns, self._bptt = columns, bptt
        self._generator = torch.Generator().manual_seed(seed)
        mean = bptt * (1.0 - _HALVED / 2)
        self.updates_an_epoch = max(1, round((len(columns) - 1) / mean))
        self._cut()

    def next(self) -> Batch:
        if self._chunk == len(self._cuts) - 1:
            self._cut()
        begin, end = self._cuts[self._chunk], self._cuts[self._chunk + 1]
        self._chunk += 1
        words, rate = self._columns[begin : end + 1], (end - begin) / self._bptt
        return Batch(words[:-1], words[1:], continues=begin > 0, rate=rate)

    def position(self) -> dict[str, Tensor]:
        return {"batches": self._begin, "batches.chunk": torch.tensor(self._chunk)}

    def seek(self, position: dict[str, Tensor]) -> None:
        self._generator.set_state(position["batches"])
        self._cut()
        self._chunk = int(position["batches.chunk"])

    def _cut(self) -> None:
        """Draw the chunks of a pass."""
        self._begin = self._generator.get_state()
        assert self.updates_an_epoch is not None
        count, targets = self.updates_an_epoch, len(self._columns) - 1
        halved = torch.rand(count, generator=self._generator) < _HALVED
        means = torch.where(halved, self._bptt / 2, float(self._bptt))
        drawn = torch.normal(means, _SPREAD, generator=self._generator)
        lengths = drawn.floor().clamp(min=_LEAST).double()
        ends = (lengths.cumsum(0) * (targets / lengths.sum())).round().long()
        self._cuts = [0, *ends.tolist()]
        self._chunk = 0


class InOrder(Split):
    """Columns (N, B) in chunks of one length, the state carried."""

    def __init__(self, columns: Tensor, bptt: int, dropped: int) -> None:
        self._columns, self._bptt, self.dropped = columns, bptt, dropped

    def batches(self, rows: int) -> Iterator[Batch]:
        for begin in range(0, len(self._columns) - 1, self._bptt):
            words = self._columns[begin : begin + self._bptt + 1]
            yield Batch(words[:-1], words[1:], continues=begin > 0)


def _exp(loss: float) -> float:
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf
