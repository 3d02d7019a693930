"""What a data set is: official files with sizes, checksums and addresses, declared as data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from gatedrnn.lab.data.errors import DataError


@dataclass(frozen=True)
class File:
    """One file as its publisher made it. Packed files (.gz, .tar.gz, .zip) say what is in them."""

    name: str
    size: int
    #: "md5:…" or "sha256:…", whichever is published.
    checksum: str
    address: str | None = None
    #: The files inside a packed file that are used. Each may also lie in the folder by itself.
    members: tuple[File, ...] = ()
    #: Other names under which the same file is known.
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def described(self) -> str:
        """Name, size and checksum for a message."""
        return f"{self.name}  {self.size:,} bytes  {self.checksum.replace(':', ' ')}"


@dataclass(frozen=True)
class DataSet:
    """A data set by its official files. ``folders`` are looked through in this order, below the data folder."""

    name: str
    title: str
    licence: str
    folders: tuple[str, ...]
    files: tuple[File, ...]

    @property
    def contents(self) -> tuple[File, ...]:
        """The files that are read, unpacked, in the order in which they are declared."""
        return tuple(content for file in self.files for content in (file.members or (file,)))

    @property
    def size(self) -> int:
        """Of the official files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def key(self) -> str:
        """Names what is made of these contents and no others."""
        text = "\n".join(f"{content.name} {content.size} {content.checksum}" for content in self.contents)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


class Checker:
    """Adds up the bytes of a file as they pass, and compares in the end."""

    def __init__(self, file: File, what: str) -> None:
        """``what`` names the file in errors."""
        self._file, self._what, self._size = file, what, 0
        algorithm, _, self._expected = file.checksum.partition(":")
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def add(self, piece: bytes) -> None:
        """Raises DataError as soon as there is more than there should be."""
        self._size += len(piece)
        if self._size > self._file.size:
            raise DataError(f"{self._what} is damaged: more than the {self._file.size:,} bytes expected")
        self._hash.update(piece)

    def end(self) -> None:
        """Raises DataError unless these were the bytes of the file."""
        if self._size != self._file.size:
            raise DataError(f"{self._what} is damaged: {self._size:,} bytes, expected {self._file.size:,}")
        if self._hash.hexdigest() != self._expected:
            raise DataError(
                f"{self._what} is damaged: its {self._hash.name} is {self._hash.hexdigest()}, expected {self._expected}"
            )
