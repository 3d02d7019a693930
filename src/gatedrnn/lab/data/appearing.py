"""Large files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_LEFT_BEHIND = 24 * 3600.0  # seconds after which a temporary name belongs to nobody who is still writing


@contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """A file to write and read that takes this name when all is on the disk, and leaves nothing behind otherwise.

    A process that was killed leaves its temporary file; a later one removes it.
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
    """The same for a folder, which takes the place of one that is there."""
    temporary = _temporary(path)
    try:
        temporary.mkdir()
        yield temporary
        os.sync()
        if path.exists():
            shutil.rmtree(path)
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")
