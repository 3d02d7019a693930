"""Sets of sound as folders: a folder for each word, with very many small files."""

from __future__ import annotations

import csv
import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gatedrnn.lab.data.errors import DataError, naming
from gatedrnn.lab.data.files import File, Found

_WAV_HEADER = 44  # bytes; a clip has more


@dataclass(frozen=True)
class Tree(ABC):
    """A folder of files; ``folders`` are its names below the data folder."""

    folders: tuple[str, ...]

    def found(self, root: Path) -> Path | None:
        """The first of the folders that is there."""
        for folder in (root / name for name in self.folders):
            with naming(folder):
                try:
                    os.scandir(folder).close()
                except (FileNotFoundError, NotADirectoryError):
                    continue
            return folder
        return None

    @abstractmethod
    def check(self, folder: Path) -> None:
        """Raises DataError that names a file unless the folder holds the set."""

    @abstractmethod
    def expects(self, path: str) -> bool:
        """Whether a file of an archive, by its name relative to the folder, belongs to the set."""

    @abstractmethod
    def described(self) -> str:
        """What the folder is, for a message."""


@dataclass(frozen=True)
class Words(Tree):
    """Speech Commands as its archive unpacks. No checksums are published: clips are counted, and lists followed."""

    #: Clips by word.
    clips: Mapping[str, int]
    #: Lines by name: lists of clips, each of which must be there.
    lists: Mapping[str, int]
    #: Folders and files besides.
    extras: tuple[str, ...] = ()

    def check(self, folder: Path) -> None:
        there = {f"{word}/{name}" for word in self.clips for name in self._names(folder, word)}
        for name, lines in self.lists.items():
            with naming(folder / name):
                listed = (folder / name).read_text(encoding="utf-8").split()
            if len(listed) != lines:
                raise DataError(f"{folder / name} is damaged: {len(listed):,} lines, expected {lines:,}")
            for clip in listed:
                if clip not in there:
                    raise DataError(f"{folder / name} lists {clip}, which is not there")

    def _names(self, folder: Path, word: str) -> list[str]:
        sizes = _clips(folder / word)
        if len(sizes) != self.clips[word]:
            raise DataError(f"{folder / word} holds {len(sizes):,} clips, expected {self.clips[word]:,}")
        for name, size in sizes.items():
            if size <= _WAV_HEADER:
                raise DataError(f"{folder / word / name} is damaged: {size} bytes")
        return list(sizes)

    def expects(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if not folder:
            return name in self.lists or name in self.extras
        return (folder in self.clips or folder in self.extras) and _is_clip(name)

    def described(self) -> str:
        return f"the unpacked folder {self.folders[0]} ({sum(self.clips.values()):,} clips of {len(self.clips)} words)"


@dataclass(frozen=True)
class Manifest(Tree):
    """A folder with a manifest.csv, whose columns are split, path and sha256."""

    file: File
    clips: int

    def check(self, folder: Path) -> None:
        manifest = folder / self.file.name
        Found(self.file, manifest).check()
        with naming(manifest), open(manifest, encoding="utf-8", newline="") as stream:
            checksums = {row["path"]: row["sha256"] for row in csv.DictReader(stream)}
        if len(checksums) != self.clips:
            raise DataError(f"{manifest} lists {len(checksums):,} clips, expected {self.clips:,}")
        for path, checksum in checksums.items():
            with naming(folder / path):
                found = hashlib.sha256((folder / path).read_bytes()).hexdigest()
            if found != checksum:
                raise DataError(f"{folder / path} is damaged: checksum mismatch, sha256 {found}, expected {checksum}")
        for word in sorted({path.partition("/")[0] for path in checksums}):
            for name in _clips(folder / word):
                if f"{word}/{name}" not in checksums:
                    raise DataError(f"{folder / word / name} is not in {manifest}")

    def expects(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return path == self.file.name or (re.fullmatch(r"\w+", folder) is not None and _is_clip(name))

    def described(self) -> str:
        return f"the folder {self.folders[0]} ({self.clips:,} clips; {self.file.described()})"


def _is_clip(name: str) -> bool:
    return re.fullmatch(r"\w[\w.-]*\.wav", name) is not None


def _clips(folder: Path) -> dict[str, int]:
    """The names and sizes of the sound files of a word."""
    with naming(folder), os.scandir(folder) as entries:
        return {entry.name: entry.stat().st_size for entry in entries if entry.name.endswith(".wav")}
