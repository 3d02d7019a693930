"""Raw speech: which of ten words was spoken, from the samples of the recording."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from gatedrnn.lab.data import SAMPLES, Clips, DataError, Say, clips, official_split, speaker_of
from gatedrnn.lab.fields import beside, check_known
from gatedrnn.lab.tasks.base import Task
from gatedrnn.lab.tasks.classification import class_loss, class_measures
from gatedrnn.lab.tasks.streams import Batch, Epochs, Samples, Split, Stream

WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")
_SPLITS = ("stratified", "speaker")
_NORMALISATIONS = ("set", "step", "clip", "none")
_SPLIT_SEED = 42  # the same split for every run
_HELD_OUT = 0.15  # of the clips of a word, for validation and again for the test
_FEWEST = 7  # clips of a word: one of them is 15 %
_LOUDEST = 32_768.0  # of a 16-bit sample
_MOST_GAIN = 1e6


@dataclass(frozen=True)
class Speech(Task):
    """Recognise one of ten spoken words from the 16,000 samples of its recording.

    The words are those of the benchmark SC10 of Speech Commands: yes, no, up, down, left, right, on, off, stop and go.
    """

    subset: bool = False
    """Use 2,000 clips of version 0.01 of the set instead of all of version 0.02. This is not the benchmark."""
    split: str = "stratified"
    """stratified (of each word 70 % for training, 15 % for validation, 15 % for the test) or speaker (the official
    split, where no speaker is in two parts)."""
    normalise: str = "set"
    """To mean 0 and variance 1: set (all samples of the training clips together), step (each step over the training
    clips), clip (each clip by itself) or none (as recorded, between -1 and 1)."""
    gain: float = 1.0
    """Factor on the normalised samples. The public code's inputs have a standard deviation of 0.2."""
    clips: int | None = None
    """Use only this many clips of each word, for a quick test. (default: all)"""
    unusable: str = beside("skip")
    """What to do if clips cannot be used (wrong length, sample rate, sample width or number of channels; silent,
    truncated, unreadable): skip (noted in the record) or refuse."""
    data: str | None = beside(None)
    """Folder with the data set. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    name = "speech"
    input_size = 1
    output_size = len(WORDS)
    last = 1
    steps = SAMPLES
    t_max = float(SAMPLES)
    metric = "accuracy"
    lower_is_better = False
    monitored = True

    def check(self) -> None:
        check_known("split", self.split, _SPLITS)
        check_known("normalise", self.normalise, _NORMALISATIONS)
        check_known("unusable", self.unusable, ("skip", "refuse"))
        if not 0 < self.gain <= _MOST_GAIN:
            raise ValueError(f"gain must be above 0 and at most {_MOST_GAIN:g}, got {self.gain}")
        if self.clips is not None and self.clips < _FEWEST:
            raise ValueError(f"clips must be at least {_FEWEST}, got {self.clips}")

    def open(self, say: Say) -> None:
        if "_clips" not in self.__dict__:  # where cached_property looks
            self.__dict__["_clips"] = self._opened(say)

    @property
    def remarks(self) -> tuple[str, ...]:
        text = self._clips.unusable_text()
        return (f"skipped {text}",) if text else ()

    def fingerprint(self) -> dict[str, str]:
        return {"clips": self._clips.fingerprint}

    def stream(self, batch_size: int, seed: int) -> Stream:
        numbers = self._numbers["training"]
        return Epochs(len(numbers), self._taker(numbers), batch_size, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        parts = {"validation": self._numbers["validation"], "test": self._numbers["testing"]}
        return {name: Samples(len(numbers), self._taker(numbers)) for name, numbers in parts.items()}

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)

    @cached_property
    def _clips(self) -> Clips:
        return self._opened(lambda text: None)

    def _opened(self, say: Say) -> Clips:
        found = clips(WORDS, None if self.data is None else Path(self.data), self.subset, say)
        if self.unusable == "refuse" and found.unusable:
            raise DataError(
                f"unusable is refuse, and some clips cannot be used; remove them or use skip: {found.unusable_text()}"
            )
        return found

    @cached_property
    def _numbers(self) -> dict[str, Tensor]:
        """The numbers of the clips of each part: training, validation and testing."""
        generator = torch.Generator().manual_seed(_SPLIT_SEED)
        parts: dict[str, list[Tensor]] = {"training": [], "validation": [], "testing": []}
        for label, word in enumerate(WORDS):
            own = (self._clips.labels == label).nonzero().squeeze(-1)
            if self.clips is not None and len(own) < self.clips:
                raise DataError(f"clips is {self.clips}, but there are only {len(own)} of {word!r}")
            own = own[torch.randperm(len(own), generator=generator)][: self.clips]
            for part, numbers in self._parts(own).items():
                if not len(numbers):
                    raise DataError(self._too_few(word, len(own), part))
                parts[part].append(numbers)
        return {part: torch.cat(found) for part, found in parts.items()}

    def _too_few(self, word: str, own: int, part: str) -> str:
        """What to say where the clips of a word leave none for a part."""
        text = f"there is no clip of {word!r} for {part}"
        if self.clips is not None:
            return f"{text} among the {own} in use: use more clips"
        unusable = self._clips.unusable_text(word)
        return f"{text}: too few can be used" + (f"; unusable are {unusable}" if unusable else f", {own}")

    def _parts(self, numbers: Tensor) -> dict[str, Tensor]:
        """The clips of one word, in random order, by part."""
        if self.split == "speaker":
            parts = [official_split(speaker_of(self._clips.paths[number])) for number in numbers.tolist()]
            return {part: numbers[[found == part for found in parts]] for part in ("training", "validation", "testing")}
        held_out = math.floor(_HELD_OUT * len(numbers) + 0.5)
        validation, testing, training = numbers.split([held_out, held_out, len(numbers) - 2 * held_out])
        return {"training": training, "validation": validation, "testing": testing}

    @cached_property
    def _shift_and_scale(self) -> tuple[Tensor, Tensor]:
        """What is subtracted from samples, and what they are then multiplied by."""
        if self.normalise == "none":
            return torch.zeros(()), torch.tensor(self.gain / _LOUDEST)
        # Over the clips, these are sums of whole numbers and below 2**53: exact, in whatever order.
        first = torch.zeros(SAMPLES, dtype=torch.float64)
        second, numbers = first.clone(), self._numbers["training"]
        for some in numbers.split(500):
            values = self._clips.samples[some].double()
            first += values.sum(0)
            second += (values**2).sum(0)
        count = len(numbers)
        if self.normalise == "set":
            first, second, count = first.sum(), second.sum(), count * SAMPLES
        mean = first / count
        # At least that of a sample that is one off now and then: a step may be the same in all clips.
        std = (second / count - mean**2).clamp(min=1e-2).sqrt()
        return mean.float(), (self.gain / std).float()

    def _taker(self, numbers: Tensor) -> Callable[[Tensor], Batch]:
        """What makes a batch of some of the numbered clips: samples (T, B, 1) and labels (1, B)."""

        def take(chosen: Tensor) -> Batch:
            picked = numbers[chosen]
            values = self._clips.samples[picked].float()
            if self.normalise == "clip":
                values = self.gain * (values - values.mean(1, keepdim=True)) / values.std(1, correction=0, keepdim=True)
            else:
                shift, scale = self._shift_and_scale
                values = (values - shift) * scale
            return Batch(values.T.contiguous().unsqueeze(-1), self._clips.labels[picked].unsqueeze(0))

        return take
