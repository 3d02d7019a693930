"""Large files and folders that appear complete or not at all, written by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gatedrnn.lab.data.places import cache_folder


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """A lock on this path: inside the ``with`` other processes wait. It ends with the process."""
    locks = cache_folder() / "locks"
    for folder in (path.parent, locks):
        folder.mkdir(parents=True, exist_ok=True)
    with open(locks / path.name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """A file to write and read that takes this name when all is on the disk, and leaves nothing behind otherwise.

    To be used ``alone``: what a killed process left under the temporary name is written over.
    """
    temporary = _temporary(path)
    try:
        with open(temporary, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def appearing_folder(path: Path) -> Iterator[Path]:
    """The same for a folder, which takes the place of whatever is there."""
    temporary = _temporary(path)
    _remove(temporary)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        os.sync()
        _remove(path)
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove(path: Path) -> None:
    """A folder, a file or a link, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")
