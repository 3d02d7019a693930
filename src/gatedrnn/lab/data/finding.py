"""Which files of a set there are, whether they are whole, and what is in them."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gatedrnn.lab.data.declared import Checker, DataSet, File
from gatedrnn.lab.data.errors import DataError, MissingDataError, naming

_CHUNK = 1 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Found:
    """A file of a set on disk."""

    file: File
    path: Path

    def check(self) -> None:
        """Raises DataError unless the file is byte for byte what it should be."""
        checker = Checker(self.file, str(self.path))
        with naming(self.path):
            size = self.path.stat().st_size
            if size != self.file.size:
                raise DataError(f"{self.path} is damaged: {size:,} bytes, expected {self.file.size:,}")
            with open(self.path, "rb") as stream:
                while piece := stream.read(_CHUNK):
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


def find(data: DataSet, root: Path) -> list[Found]:
    """The files to read, unpacked ones first. Raises MissingDataError if the set is not complete."""
    found, missing = look(data, root)
    if missing:
        raise MissingDataError(missing_text(data, root, missing))
    return found


def look(data: DataSet, root: Path) -> tuple[list[Found], list[File]]:
    """The files that are there, and the official files that are not and would be needed."""
    found: list[Found] = []
    missing: list[File] = []
    for file in data.files:
        members = [_located(member, data, root) for member in file.members]
        packed = _located(file, data, root)
        if file.members and all(members):
            found.extend(member for member in members if member is not None)
        elif packed is not None:
            found.append(packed)
        else:
            missing.append(file)
    return found, missing


def missing_text(data: DataSet, root: Path, missing: list[File]) -> str:
    """One message for a set that is not there: what to do, and the files with checksums and addresses."""
    lines = [f"{data.name} is not in {root}. With a network: gatedrnn data fetch {data.name}."]
    lines.append(f"Without: put these files into {root / data.folders[0]} (licence: {data.licence}):")
    for file in missing:
        lines.append(f"  {file.described()}" + (f"  {file.address}" if file.address else ""))
        lines.extend(f"    or, unpacked: {member.described()}" for member in file.members)
    return "\n".join(lines)


def _located(file: File, data: DataSet, root: Path) -> Found | None:
    for folder in data.folders:
        for name in file.names:
            path = root / folder / name
            with naming(path):
                try:
                    regular = stat.S_ISREG(path.stat().st_mode)
                except (FileNotFoundError, NotADirectoryError):
                    continue
            if not regular:
                raise DataError(f"{path} is not a file")
            return Found(file, path)
    return None


def _unpacked(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    for suffix, unpack in _UNPACKERS.items():
        if file.name.endswith(suffix):
            seen = set()
            for member, content in unpack(path, file):
                if member in seen:
                    raise DataError(f"{path} is damaged: {member.name} is in it twice")
                seen.add(member)
                yield member, content
            for member in file.members:
                if member not in seen:
                    raise DataError(f"{path} is damaged: {member.name} is not in it")
            return
    raise DataError(f"{path} is packed in a way that is not known: use {', '.join(_UNPACKERS)}")


def _from_gzip(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    (member,) = file.members
    with gzip.open(path) as stream:
        yield member, _whole(member, f"{member.name} in {path}", stream)


def _from_tar(path: Path, file: File) -> Iterator[tuple[File, bytes]]:
    """Read one after the other, without a seek; nothing is written under a name from the archive."""
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


def _whole(file: File, what: str, stream: _Readable) -> bytes:
    """All bytes of the stream, which must be those of the file. No more than those is ever read."""
    content = stream.read(file.size + 1)
    checker = Checker(file, what)
    checker.add(content)
    checker.end()
    return content
