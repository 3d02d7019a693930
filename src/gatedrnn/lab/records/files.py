"""Writing that survives: files appear whole or not at all, and stay when the power goes."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any


def write(path: Path, content: bytes) -> None:
    """Write under a temporary name in the same folder, force it to the disk, then move it into place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_through(temporary, content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """The value as one indented JSON document."""
    write(path, (json.dumps(finite(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


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


def line(value: dict[str, Any]) -> str:
    """The value as one line of JSON."""
    return json.dumps(finite(value), ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """The value as JSON can hold it: None for a number that is not finite."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
