"""Sets of sound as folders: a folder for each word, with very many small files."""

from __future__ import annotations

import csv
import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gatedrnn.lab.data.errors import DataError, first_of, naming
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
        """Raises DataError that names a file or a folder of a word unless the folder holds the set."""

    def verify(self, folder: Path) -> None:
        """The same for all that can be known of the clips, also that which can be skipped when they are read."""
        self.check(folder)

    @abstractmethod
    def complete(self, paths: Collection[str]) -> bool:
        """Whether a list of files has all clips of the set."""

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
        _check_folders(folder, self.clips)
        there = {f"{word}/{name}" for word in self.clips for name in clip_names(folder / word)}
        counts = _by_word(there)
        for word, expected in self.clips.items():
            if counts[word] != expected:
                raise DataError(f"{folder / word} holds {counts[word]:,} clips, expected {expected:,}")
        for name, lines in self.lists.items():
            with naming(folder / name):
                listed = (folder / name).read_text(encoding="utf-8").split()
            if len(listed) != lines:
                raise DataError(f"{folder / name} is damaged: {len(listed):,} lines, expected {lines:,}")
            for clip in listed:
                if clip not in there:
                    raise DataError(f"{folder / name} lists {clip}, which is not there")

    def verify(self, folder: Path) -> None:
        self.check(folder)
        faults = {}
        for path in (f"{word}/{name}" for word in self.clips for name in sorted(clip_names(folder / word))):
            try:
                size = os.stat(folder / path).st_size
            except OSError as wrong:
                faults[path] = f"cannot read {folder / path}: {wrong.strerror or wrong}"
            else:
                if size <= _WAV_HEADER:
                    faults[path] = f"{folder / path} is damaged: {size} bytes"
        _check_faults(faults)

    def complete(self, paths: Collection[str]) -> bool:
        counts = _by_word(paths)
        return all(counts[word] == expected for word, expected in self.clips.items())

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
        words = sorted(_by_word(checksums))
        _check_folders(folder, words)
        faults = {}
        for path, checksum in checksums.items():
            try:
                found = hashlib.sha256((folder / path).read_bytes()).hexdigest()
            except OSError as wrong:
                faults[path] = f"cannot read {folder / path}: {wrong.strerror or wrong}"
                continue
            if found != checksum:
                faults[path] = f"{folder / path} is damaged: checksum mismatch, sha256 {found}, expected {checksum}"
        for path in (f"{word}/{name}" for word in words for name in sorted(clip_names(folder / word))):
            if path not in checksums:
                faults[path] = f"{folder / path} is not in {manifest}"
        _check_faults(faults)

    def complete(self, paths: Collection[str]) -> bool:
        return sum(path.endswith(".wav") for path in paths) == self.clips

    def expects(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return path == self.file.name or (re.fullmatch(r"\w+", folder) is not None and _is_clip(name))

    def described(self) -> str:
        return f"the folder {self.folders[0]} ({self.clips:,} clips; {self.file.described()})"


def _is_clip(name: str) -> bool:
    return re.fullmatch(r"\w[\w.-]*\.wav", name) is not None


def clip_names(folder: Path) -> list[str]:
    """The names of the sound files of a word, whether they can be read or not."""
    with naming(folder), os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.name.endswith(".wav")]


def _by_word(paths: Iterable[str]) -> Counter[str]:
    """How many files there are in each folder."""
    return Counter(path.partition("/")[0] for path in paths)


def _check_folders(folder: Path, words: Iterable[str]) -> None:
    missing = []
    for word in words:
        with naming(folder / word):
            try:
                os.scandir(folder / word).close()
            except FileNotFoundError:
                missing.append(word)
    if missing:
        what = "the folder of a word is" if len(missing) == 1 else f"the folders of {len(missing)} words are"
        raise DataError(f"{what} missing in {folder}: {first_of(missing)}")


def _check_faults(faults: Mapping[str, str]) -> None:
    """Raises DataError with what is wrong with the first clip, and the names of the next."""
    if faults:
        (_, first), *others = faults.items()
        more = f"; and {len(others):,} more: {first_of([path for path, _ in others])}" if others else ""
        raise DataError(first + more)
