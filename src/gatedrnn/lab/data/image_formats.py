"""Layout of images and labels in the official files."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.errors import DataError

Bytes = NDArray[np.uint8]
FIELDS = ("train_images", "train_labels", "test_images", "test_labels")


@dataclass(frozen=True)
class Piece:
    """Some samples of a field, the first of which is number ``start``."""

    field: str
    start: int
    values: Bytes


class ImageFormat(ABC):
    """Reads the contents of one file of a set of images."""

    @abstractmethod
    def pieces(self, data: ImageData, index: int, content: bytes) -> Iterator[Piece]:
        """What is in the file ``data.contents[index]``. Raises DataError that names it."""


@dataclass(frozen=True, kw_only=True)
class ImageData(DataSet):
    """A set of images: how many, of which shape (channels last), in how many classes, and how the files hold them."""

    train: int
    test: int
    shape: tuple[int, ...]
    format: ImageFormat
    classes: int = 10

    def shape_of(self, field: str) -> tuple[int, ...]:
        split, _, kind = field.partition("_")
        samples = self.train if split == "train" else self.test
        return (samples, *self.shape) if kind == "images" else (samples,)


@dataclass(frozen=True)
class Idx(ImageFormat):
    """MNIST's format: a header with the shape, then bytes. A file for each field, in the order of FIELDS."""

    def pieces(self, data: ImageData, index: int, content: bytes) -> Iterator[Piece]:
        name, field = data.contents[index].name, FIELDS[index]
        expected = data.shape_of(field)
        header = 4 + 4 * len(expected)
        # Two zero bytes, the type (8: unsigned bytes), the number of dimensions; then the dimensions, big-endian.
        if content[:4] != bytes((0, 0, 8, len(expected))) or len(content) < header:
            raise DataError(f"{name} is not an idx file of bytes in {len(expected)} dimensions")
        shape = struct.unpack(f">{len(expected)}I", content[4:header])
        if shape != expected:
            raise DataError(f"{name} holds {_times(shape)} values, expected {_times(expected)}")
        if len(content) != header + prod(shape):
            raise DataError(f"{name} ends after {len(content):,} bytes, expected {header + prod(shape):,}")
        values = np.frombuffer(content, np.uint8, offset=header).reshape(shape)
        if field.endswith("labels"):
            check_labels(name, values, data.classes)
        yield Piece(field, 0, values)


@dataclass(frozen=True)
class CifarBinary(ImageFormat):
    """CIFAR's format: for each sample a label and an image, channels first. The last file is the test set."""

    def pieces(self, data: ImageData, index: int, content: bytes) -> Iterator[Piece]:
        name, files = data.contents[index].name, len(data.contents) - 1
        split, samples = ("test", data.test) if index == files else ("train", data.train // files)
        height, width, channels = data.shape
        record = 1 + prod(data.shape)
        if len(content) != samples * record:
            raise DataError(f"{name} has {len(content):,} bytes, expected {samples:,} records of {record:,}")
        records = np.frombuffer(content, np.uint8).reshape(samples, record)
        labels = np.ascontiguousarray(records[:, 0])
        check_labels(name, labels, data.classes)
        images = records[:, 1:].reshape(samples, channels, height, width).transpose(0, 2, 3, 1)
        start = 0 if split == "test" else index * samples
        yield Piece(f"{split}_labels", start, labels)
        yield Piece(f"{split}_images", start, np.ascontiguousarray(images))


def check_labels(name: str, labels: Bytes, classes: int) -> None:
    wrong = np.flatnonzero(labels >= classes)
    if len(wrong):
        at = int(wrong[0])
        raise DataError(f"{name}: label {at:,} is {labels[at]}, expected 0 to {classes - 1}")


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in shape)
