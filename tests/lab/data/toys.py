"""Small data sets with checksums of their own, in the official formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import wave
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gatedrnn.lab.data.files import File
from gatedrnn.lab.data.image_formats import CifarBinary, Idx, ImageData
from gatedrnn.lab.data.speech import SpeechData
from gatedrnn.lab.data.text import SPLITS, TextData
from gatedrnn.lab.data.trees import Manifest, Words

IDX_NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
CIFAR_NAMES = ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin")


def file(name: str, content: bytes, algorithm: str = "md5", members: tuple[File, ...] = (), at: str = "") -> File:
    checksum = f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"
    return File(name, len(content), checksum, f"{at}/{name}" if at else None, members)


def write(folder: Path, contents: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def packed(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in contents.items()}


def tar(
    contents: Mapping[str, bytes], folder: str = "cifar-10-batches-bin", extra: tarfile.TarInfo | None = None
) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in {"readme.html": b"<html>", **contents}.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        if extra is not None:
            archive.addfile(extra, io.BytesIO(b"x" * extra.size))
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
    facts = {"name": "toy", "title": "digits", "licence": "free", "folders": ("toy", ".")}
    return ImageData(**facts, files=files, train=train, test=test, shape=(2, 3), format=Idx())


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
    facts = {"name": "toyfar", "title": "photos", "licence": "free", "folders": ("toyfar", ".")}
    return ImageData(**facts, files=(archive_file,), train=4, test=2, shape=(4, 5, 3), format=CifarBinary())


def text_contents() -> dict[str, bytes]:
    return {f"toy.{split}.txt": f"the {split} set\n".encode() for split in SPLITS}


def text_set(files: tuple[File, ...]) -> TextData:
    facts = {"name": "words", "title": "text", "licence": "free", "folders": ("words", "elsewhere")}
    return TextData(**facts, files=files, tokens=(4, 4, 4), vocabulary=6)


CLIPS = {"yes": 3, "no": 2}
_LISTS = {
    "validation_list.txt": ["yes/a_nohash_0.wav"],
    "testing_list.txt": ["no/a_nohash_0.wav", "yes/b_nohash_0.wav"],
}


def speech_contents() -> dict[str, bytes]:
    """By path: clips that are all different, the lists, and what else lies in the archive."""
    clips = {
        f"{word}/{'abc'[i]}_nohash_0.wav": f"{word} {i} ".encode() * 20 for word in CLIPS for i in range(CLIPS[word])
    }
    lists = {name: "".join(f"{clip}\n" for clip in listed).encode() for name, listed in _LISTS.items()}
    return {**clips, **lists, "_background_noise_/tap.wav": b"hiss" * 50, "LICENSE": b"free"}


def speech_tree() -> Words:
    extras = ("_background_noise_", "LICENSE")
    return Words(("spoken",), CLIPS, {name: len(listed) for name, listed in _LISTS.items()}, extras)


def speech_set(archive: bytes, at: str = "") -> SpeechData:
    facts = {"name": "spoken", "title": "words", "licence": "free", "folders": ("spoken_archive", ".")}
    return SpeechData(**facts, files=(file("spoken.tar.gz", archive, "sha256", at=at),), tree=speech_tree())


def manifest_contents() -> dict[str, bytes]:
    clips = {path: content for path, content in speech_contents().items() if path.endswith("_nohash_0.wav")}
    rows = [f"training,{path},{hashlib.sha256(content).hexdigest()}" for path, content in clips.items()]
    return {**clips, "manifest.csv": "\n".join(["split,path,sha256", *rows, ""]).encode()}


def manifest_set(contents: Mapping[str, bytes]) -> SpeechData:
    tree = Manifest(("few",), file("manifest.csv", contents["manifest.csv"], "sha256"), 5)
    return SpeechData(name="few", title="words", licence="free", folders=(".",), files=(), tree=tree)


def wav(samples: np.ndarray, rate: int = 16_000, width: int = 2, channels: int = 1) -> bytes:
    """Samples as the content of a WAV file; ``width`` and ``channels`` say how its bytes are to be read."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as clip:
        clip.setnchannels(channels)
        clip.setsampwidth(width)
        clip.setframerate(rate)
        clip.writeframes(samples.astype("<i2").tobytes())
    return stream.getvalue()


def spoken(samples: int = 16_000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2000, 2000, samples).astype(np.int16)


def word_set(words: Mapping[str, int], archive: bytes | None = None) -> SpeechData:
    """A set of so many clips of these words, without lists; also as an archive, words.tar.gz."""
    facts = {"name": "words", "title": "words", "licence": "free", "folders": (".",)}
    files = () if archive is None else (file("words.tar.gz", archive, "sha256"),)
    return SpeechData(**facts, files=files, tree=Words(("words",), words, {}))
