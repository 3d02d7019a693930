"""Official files: what they are, whether a copy on disk is whole, and what is in it."""

from __future__ import annotations

import gzip
import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatedrnn.lab.data.errors import DataError, naming

CHUNK = 1 << 20


@dataclass(frozen=True)
class File:
    """One file as its publisher made it. Packed files (.gz, .tar.gz, .zip) say what is in them."""

    name: str
    size: int
    #: "md5:…" or "sha256:…", whichever is published.
    checksum: str
    address: str | None = None
    #: The files inside a packed file that are used. Each may also be in the folder by itself.
    members: tuple[File, ...] = ()
    #: Other names under which the same file is known.
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def described(self) -> str:
        """Names, size and checksum for a message."""
        return f"{' or '.join(self.names)}  {self.size:,} bytes  {self.checksum.replace(':', ' ')}"


class Checker:
    """Takes the bytes of a file as they pass, and compares in the end."""

    def __init__(self, file: File, what: str) -> None:
        """``what`` names the file in errors."""
        self._file, self._what, self._size = file, what, 0
        algorithm, _, self._expected = file.checksum.partition(":")
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def add(self, piece: bytes) -> None:
        """Raises DataError as soon as there is more than there should be."""
        self._size += len(piece)
        if self._size > self._file.size:
            raise DataError(f"{self._what} is damaged: larger than the {self._file.size:,} bytes expected")
        self._hash.update(piece)

    def end(self) -> None:
        """Raises DataError unless these were the bytes of the file."""
        if self._size != self._file.size:
            raise DataError(f"{self._what} is damaged: {self._size:,} bytes, expected {self._file.size:,}")
        found, expected = self._hash.hexdigest(), self._expected
        if found != expected:
            raise DataError(
                f"{self._what} is damaged: checksum mismatch, {self._hash.name} {found}, expected {expected}"
            )


@dataclass(frozen=True)
class Found:
    """A copy of a file on disk."""

    file: File
    path: Path

    def check(self) -> None:
        """Raises DataError unless the copy is byte for byte what it should be."""
        checker = Checker(self.file, str(self.path))
        with naming(self.path):
            size = self.path.stat().st_size
            if size != self.file.size:
                raise DataError(f"{self.path} is damaged: {size:,} bytes, expected {self.file.size:,}")
            with open(self.path, "rb") as stream:
                while piece := stream.read(CHUNK):
                    checker.add(piece)
        checker.end()

    def contents(self) -> Iterator[tuple[File, bytes]]:
        """The files it holds, each checked: itself, or its members in the order of the archive."""
        with naming(self.path):
            if not self.file.members:
                with open(self.path, "rb") as stream:
                    yield self.file, _whole(self.file, str(self.path), stream)
                return
            try:
                yield from _unpacked(self.path, self.file)
            except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, gzip.BadGzipFile) as wrong:
                raise DataError(f"{self.path} is damaged: {wrong}") from wrong


def copies(file: File, folders: list[Path]) -> Iterator[Found]:
    """The copies of a file in these folders, under any of its names. Raises DataError if one is not a file."""
    for path in (folder / name for folder in folders for name in file.names):
        with naming(path):
            try:
                regular = stat.S_ISREG(path.stat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                continue
        if not regular:
            raise DataError(f"{path} is not a file")
        yield Found(file, path)


def _unpacked(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    unpack = next((unpack for suffix, unpack in _UNPACKERS.items() if file.name.endswith(suffix)), None)
    if unpack is None:
        raise DataError(f"{path} has an unknown archive format; known formats: {', '.join(_UNPACKERS)}")
    seen = set()
    for member, content in unpack(path, file):
        if member in seen:
            raise DataError(f"{path} is damaged: {member.name} is in it twice")
        seen.add(member)
        yield member, content
    for member in file.members:
        if member not in seen:
            raise DataError(f"{path} is damaged: {member.name} is not in it")


def _from_gzip(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    (member,) = file.members
    with gzip.open(path) as stream:
        yield member, _whole(member, f"{member.name} in {path}", stream)


def _from_tar(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    """Read from front to back; nothing is written under a name from the archive, and links are not followed."""
    wanted = {member.name: member for member in file.members}
    with tarfile.open(path, "r|gz") as archive:
        for entry in archive:
            member = wanted.get(entry.name.rpartition("/")[2])
            stream = archive.extractfile(entry) if member is not None and entry.isreg() else None
            if member is not None and stream is not None:
                yield member, _whole(member, f"{entry.name} in {path}", stream)


def _from_zip(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    wanted = {member.name: member for member in file.members}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            member = wanted.get(entry.filename.rpartition("/")[2])
            if member is not None:
                with archive.open(entry) as stream:
                    yield member, _whole(member, f"{entry.filename} in {path}", stream)


_UNPACKERS: dict[str, Callable[[Path, File], Iterator[tuple[File, bytes]]]] = {
    ".tar.gz": _from_tar,
    ".gz": _from_gzip,
    ".zip": _from_zip,
}


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _whole(file: File, what: str, stream: _Readable) -> bytes:
    """All bytes of the stream, which must be those of the file. One byte more is read than that, and never another."""
    content = stream.read(file.size + 1)
    checker = Checker(file, what)
    checker.add(content)
    checker.end()
    return content
