"""One file from its official address: resumed where it broke off, checked before it takes its name."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gatedrnn.lab.data.errors import DataError, naming
from gatedrnn.lab.data.files import File, Found
from gatedrnn.lab.data.web import BrokenOffError, DownloadError, UnreachableError, pieces

#: progress(name, done, total): bytes of a file that are on the disk.
Progress = Callable[[str, int, int], None]

_FRUITFUL = 64 << 10  # bytes; a connection that brings fewer counts as a failure


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds, and how many connections may fail one after the other."""

    stall: float = 30.0
    failures: int = 4
    #: After the first failure; doubled after each further one.
    pause: float = 1.0


def download(file: File, path: Path, progress: Progress, patience: Patience) -> None:
    """Put the file at ``path``. What arrives is kept beside it as NAME.part, from which a later call continues.

    Raises DownloadError if the address gives something else or nothing, DataError if it cannot be written here.
    """
    part = path.with_name(f"{path.name}.part")
    with naming(part, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _claimed(part) as stream:
            _fill(file, part, stream, progress, patience)
            os.fsync(stream.fileno())
            os.replace(part, path)


@contextmanager
def _claimed(part: Path) -> Iterator[BinaryIO]:
    """The partial file, opened at its end, for this process alone. One that stays empty is removed."""
    with open(part, "a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"{part} is in use: another process is downloading it") from None
        try:
            yield stream
        finally:
            if not _size(stream):
                part.unlink(missing_ok=True)


def _fill(file: File, part: Path, stream: BinaryIO, progress: Progress, patience: Patience) -> None:
    """One connection after the other, until the partial file is whole and right."""
    from_before, connected, failures = _size(stream) > 0, False, 0
    if _size(stream) > file.size:
        stream.truncate(0)
    while True:
        size = _size(stream)
        if size == file.size:
            try:
                Found(file, part).check()
                return
            except DataError as wrong:
                stream.truncate(0)
                if not from_before:
                    raise DownloadError(f"{file.address} is not the published file: {wrong}") from wrong
            from_before, size = False, 0  # what was there may have been of another file: once more from the start
        _check_space(part, file.size - size)
        try:
            _append(file, stream, progress, patience.stall)
        except (BrokenOffError, UnreachableError) as broken:
            if isinstance(broken, UnreachableError) and not connected:
                raise
            connected = True
            now = _size(stream)
            failures = 0 if now - size >= _FRUITFUL else failures + 1
            if failures >= patience.failures:
                kept = f"; {now:,} of {file.size:,} bytes kept, run the same command to resume" if now else ""
                raise DownloadError(f"download of {file.address} failed: {broken}{kept}") from broken
            time.sleep(patience.pause * 2 ** max(failures - 1, 0))


def _append(file: File, stream: BinaryIO, progress: Progress, stall: float) -> None:
    """Write what one connection gives. Never more than the file has."""
    for begin, piece in pieces(file, _size(stream), stall):
        if begin != _size(stream):
            stream.truncate(begin)  # the server begins from the start
        if begin + len(piece) > file.size:
            stream.truncate(0)
            raise DownloadError(f"{file.address} sent more than the {file.size:,} bytes expected")
        stream.write(piece)
        stream.flush()
        progress(file.name, begin + len(piece), file.size)
    if _size(stream) < file.size:
        raise BrokenOffError(f"connection closed after {_size(stream):,} of {file.size:,} bytes")


def _size(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_size


def _check_space(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if free < needed:
        raise DataError(f"cannot write {part}: {needed:,} bytes are needed, {free:,} are free")
