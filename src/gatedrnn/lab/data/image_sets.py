"""Images as memory-mapped tensors, made once from the official files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from gatedrnn.lab.data.appearing import alone, appearing
from gatedrnn.lab.data.errors import DataError, naming
from gatedrnn.lab.data.files import CHUNK, Found
from gatedrnn.lab.data.image_formats import FIELDS, ImageData
from gatedrnn.lab.data.places import cache_folder

_LAYOUT = 1  # to be counted up when the prepared file changes
_CHECKSUM = hashlib.sha256().digest_size  # bytes at the end of the prepared file


@dataclass(frozen=True)
class ImageSet:
    """Images (N, height, width[, channels]) and labels (N,), unsigned bytes."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def open_images(data: ImageData, root: Path) -> ImageSet:
    """The images of a set, checked, mapped from a file that is made the first time and when it is damaged."""
    found = data.find(root)
    path = cache_folder() / "prepared" / f"{data.key}.images"
    mapped = _mapped(data, path)
    if mapped is None:
        with naming(path, "write"), alone(path):
            mapped = _mapped(data, path)  # another process may have made it meanwhile
            if mapped is None:
                _prepare(data, found, path)
                mapped = _mapped(data, path)
    if mapped is None:
        raise DataError(f"{path} changed while it was written")
    return ImageSet(**{field: mapped[begin:end].view(data.shape_of(field)) for field, begin, end in _layout(data)})


def _layout(data: ImageData) -> Iterator[tuple[str, int, int]]:
    """The fields one after the other: name, first byte, first byte after it."""
    begin = 0
    for field in FIELDS:
        end = begin + prod(data.shape_of(field))
        yield field, begin, end
        begin = end


def _total(data: ImageData) -> int:
    return max(end for _, _, end in _layout(data))


def _checksum(data: ImageData) -> hashlib._Hash:
    """Begun with how the bytes are to be read: a file of another layout is never taken for one of this."""
    return hashlib.sha256(repr((_LAYOUT, data.train, data.test, data.shape, data.classes, data.format)).encode())


def _mapped(data: ImageData, path: Path) -> Tensor | None:
    """All bytes of the prepared file, if it is there and its checksum, at its end, is right."""
    total = _total(data)
    with naming(path):
        try:
            if path.stat().st_size != total + _CHECKSUM:
                return None
        except FileNotFoundError:
            return None
        try:
            mapped = torch.from_file(str(path), shared=False, size=total + _CHECKSUM, dtype=torch.uint8)
        except RuntimeError as wrong:  # torch's word for what the system refuses
            raise DataError(f"cannot read {path}: {wrong}") from wrong
    values = mapped.numpy()
    checksum = _checksum(data)
    checksum.update(values[:total].data)
    if checksum.digest() != values[total:].tobytes():
        return None
    return mapped[:total]


def _prepare(data: ImageData, found: list[Found], path: Path) -> None:
    """Write the prepared file under a temporary name, one official file after the other, and put it into place."""
    begins = {field: begin for field, begin, _ in _layout(data)}
    with appearing(path) as stream:
        stream.truncate(_total(data))
        for file in found:
            for content_file, content in file.contents():
                for samples in data.format.pieces(data, data.contents.index(content_file), content):
                    stream.seek(begins[samples.field] + samples.start * prod(data.shape_of(samples.field)[1:]))
                    stream.write(samples.values.data)
        checksum = _checksum(data)
        stream.seek(0)
        while piece := stream.read(CHUNK):
            checksum.update(piece)
        stream.write(checksum.digest())
