"""Images read pixel by pixel: sMNIST, psMNIST and sCIFAR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from gatedrnn.lab.data import ImageSet, images
from gatedrnn.lab.fields import beside
from gatedrnn.lab.tasks.base import Task
from gatedrnn.lab.tasks.classification import class_loss, class_measures
from gatedrnn.lab.tasks.streams import Batch, Epochs, Samples, Split, Stream

_SPLIT_SEED = 42  # the same split for every run
_FEWEST = 20  # images: two each for validation and test


@dataclass(frozen=True)
class PixelTask(Task):
    """Classify an image from its pixels, read one by one, row by row.

    A tenth of the training images, always the same, is for validation.
    """

    images: int | None = None
    """Use only this many training images, for a quick test: a tenth of them for validation, and as many for the test.
    (default: all)"""
    data: str | None = beside(None)
    """Folder with the data set. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    metric = "accuracy"
    lower_is_better = False
    output_size = 10
    last = 1
    data_set: ClassVar[str]

    @property
    def t_max(self) -> float:
        return float(self.steps)

    def check(self) -> None:
        if self.images is not None and self.images < _FEWEST:
            raise ValueError(f"images must be at least {_FEWEST}, got {self.images}")

    def stream(self, batch_size: int, seed: int) -> Stream:
        train, _ = self._numbers
        return Epochs(len(train), self._taker(self._set.train_images, self._set.train_labels, train), batch_size, seed)

    def splits(self, size: int | None) -> Mapping[str, Split]:
        _, validation = self._numbers
        count = len(self._set.test_labels) if self.images is None else len(validation)
        test = torch.arange(min(count, len(self._set.test_labels)))
        return {
            "validation": Samples(
                len(validation), self._taker(self._set.train_images, self._set.train_labels, validation)
            ),
            "test": Samples(len(test), self._taker(self._set.test_images, self._set.test_labels, test)),
        }

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        return class_loss(output, target)

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return class_measures(output, target)

    @cached_property
    def _set(self) -> ImageSet:
        return images(self.data_set, None if self.data is None else Path(self.data))

    @cached_property
    def _numbers(self) -> tuple[Tensor, Tensor]:
        """Of the training images: those for training, and those for validation."""
        order = torch.randperm(len(self._set.train_labels), generator=torch.Generator().manual_seed(_SPLIT_SEED))
        order = order[: self.images]
        return order[len(order) // 10 :], order[: len(order) // 10]

    def _taker(self, pictures: Tensor, labels: Tensor, numbers: Tensor) -> Callable[[Tensor], Batch]:
        """What makes a batch of some of the numbered pictures: pixels (T, B, channels) and labels (1, B)."""

        def take(chosen: Tensor) -> Batch:
            picked = numbers[chosen]
            bytes_ = pictures[picked].reshape(len(picked), self.steps, self.input_size)
            return Batch(self.pixels(bytes_).transpose(0, 1).contiguous(), labels[picked].long().unsqueeze(0))

        return take

    def pixels(self, pictures: Tensor) -> Tensor:
        """Unsigned bytes (B, T, channels) as numbers, in the order in which they are read."""
        return pictures.float() / 255


@dataclass(frozen=True)
class SequentialMNIST(PixelTask):
    """Recognise a handwritten digit from its 784 pixels, read row by row."""

    name = "smnist"
    data_set = "mnist"
    steps = 784
    input_size = 1


@dataclass(frozen=True)
class PermutedMNIST(PixelTask):
    """Recognise a handwritten digit from its 784 pixels, read in bit-reversed order."""

    name = "psmnist"
    data_set = "mnist"
    steps = 784
    input_size = 1

    def pixels(self, pictures: Tensor) -> Tensor:
        return super().pixels(pictures[:, bit_reversal(self.steps)])


@dataclass(frozen=True)
class SequentialCIFAR(PixelTask):
    """Recognise what a photograph shows from its 1024 pixels of three colours, read row by row."""

    name = "scifar"
    data_set = "cifar10"
    steps = 1024
    input_size = 3

    def pixels(self, pictures: Tensor) -> Tensor:
        """Normalised by mean and standard deviation of each colour over the training set."""
        mean, std = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.247, 0.243, 0.261])
        return (super().pixels(pictures) - mean) / std


@cache
def bit_reversal(count: int) -> Tensor:
    """0 … count−1 in the order of their bits read backwards, with as few bits as the largest needs."""
    bits = (count - 1).bit_length()
    reversed_ = [int(f"{number:0{bits}b}"[::-1], 2) for number in range(2**bits)]
    return torch.tensor([number for number in reversed_ if number < count])
