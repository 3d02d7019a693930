"""Durable writes: files appear complete or not at all, and survive a power failure."""

from __future__ import annotations

import os
from pathlib import Path


def check_folder(folder: Path) -> None:
    """Raise OSError if results could not be written into this folder; creates nothing."""
    place = folder
    while not (place.exists() or place.is_symlink()):
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(f"cannot write to {folder}: {place} is not a folder")
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(f"cannot write to {folder}: no permission to write in {place}")


def write(path: Path, content: bytes) -> None:
    """Write under a temporary name in the same folder, force it to the disk, then move it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_through(temporary, content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_through(path: Path, content: bytes) -> None:
    """Write and wait until it is on the disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def append(path: Path, text: str) -> None:
    """Add to the end and hand it to the system at once, so that a killed process loses nothing. No link is followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with open(descriptor, "ab") as file:
        file.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Wait until the names in this folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
