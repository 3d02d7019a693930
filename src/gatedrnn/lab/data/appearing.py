"""Files too large for the memory that appear whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_LEFT_BEHIND = 3600.0  # seconds after which a temporary file belongs to nobody who is still writing


@contextmanager
def appearing(path: Path) -> Iterator[BinaryIO]:
    """A file to write and read that takes this name when all is on the disk, and leaves nothing behind otherwise.

    A process that was killed leaves its temporary file; a later one removes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
            left.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
