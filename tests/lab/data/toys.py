"""Small data sets with checksums of their own, in the official formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gatedrnn.lab.data.declared import DataSet, File
from gatedrnn.lab.data.image_formats import CifarBinary, Idx, ImageData

IDX_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
CIFAR_NAMES = ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin")


def file(name: str, content: bytes, algorithm: str = "md5", members: tuple[File, ...] = (), at: str = "") -> File:
    checksum = f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"
    return File(name, len(content), checksum, f"{at}/{name}" if at else None, members)


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def packed(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in contents.items()}


def tar(contents: Mapping[str, bytes], folder: str = "cifar-10-batches-bin") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in {"readme.html": b"<html>", **contents}.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def zipped(contents: Mapping[str, bytes], folder: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"{folder}/{name}", content)
    return stream.getvalue()


def idx(values: np.ndarray) -> bytes:
    return bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def idx_arrays(train: int = 6, test: int = 3) -> dict[str, np.ndarray]:
    """By file name: images of 2 × 3 pixels that are all different, and labels."""
    random = np.random.default_rng(1)
    shapes = ((train, 2, 3), (train,), (test, 2, 3), (test,))
    return {
        name: random.integers(0, 256 if len(shape) > 1 else 10, shape).astype(np.uint8)
        for name, shape in zip(IDX_NAMES, shapes, strict=True)
    }


def idx_set(contents: Mapping[str, bytes], train: int = 6, test: int = 3, at: str = "") -> ImageData:
    """Declares these four contents, which may be wrong inside, with the checksums that they have."""
    files = tuple(
        file(f"{name}.gz", gzip.compress(content, mtime=0), members=(file(name, content),), at=at)
        for name, content in contents.items()
    )
    return ImageData("toy", "digits", "free", ("toy", "."), files, train, test, (2, 3), Idx())


def idx_contents() -> dict[str, bytes]:
    return {name: idx(values) for name, values in idx_arrays().items()}


def cifar_arrays() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By file name: labels (2,) and images (2, 4, 5, 3), channels last."""
    random = np.random.default_rng(2)
    return {
        name: (random.integers(0, 10, 2).astype(np.uint8), random.integers(0, 256, (2, 4, 5, 3)).astype(np.uint8))
        for name in CIFAR_NAMES
    }


def cifar_contents() -> dict[str, bytes]:
    """Records of a label and an image with the channels first."""
    return {
        name: b"".join(
            bytes([label]) + image.transpose(2, 0, 1).tobytes() for label, image in zip(labels, images, strict=True)
        )
        for name, (labels, images) in cifar_arrays().items()
    }


def cifar_set(contents: Mapping[str, bytes], archive: bytes | None = None, at: str = "") -> ImageData:
    members = tuple(file(name, content) for name, content in contents.items())
    archive_file = file("toy.tar.gz", archive or tar(contents), "sha256", members, at)
    return ImageData("toyfar", "photos", "free", ("toyfar", "."), (archive_file,), 4, 2, (4, 5, 3), CifarBinary())


def text_contents() -> dict[str, bytes]:
    return {f"toy.{split}.txt": f"the {split} set\n".encode() for split in ("train", "valid", "test")}


def text_set(contents: Mapping[str, bytes], at: str = "") -> DataSet:
    return DataSet("words", "text", "free", ("words",), tuple(file(n, c, at=at) for n, c in contents.items()))
