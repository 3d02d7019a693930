"""Checkpoints: folders that appear whole, say what they hold, and are believed only when it is so."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.records.files import finite, sync_folder, write_through
from gatedrnn.lab.records.run import SCHEMA, check_schema, read_json

CHECKPOINTS = "checkpoints"
CHECKPOINT_KIND = "gatedrnn checkpoint"
_NOTE = "checkpoint.json"
_KEPT = 2  # the last one, and the one before it should that be damaged


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint and what was noted beside them."""

    update: int
    note: dict[str, Any]
    files: dict[str, bytes]


def write_checkpoint(run_folder: Path, update: int, note: dict[str, Any], files: dict[str, bytes]) -> None:
    """Put the checkpoint down whole, then remove all but the last two."""
    place = run_folder / CHECKPOINTS
    place.mkdir(exist_ok=True)
    final, temporary = place / f"{update:08d}", place / f".{update:08d}.{os.getpid()}.tmp"
    checksums = {name: _checksum(content) for name, content in files.items()}
    described = {"schema": SCHEMA, "kind": CHECKPOINT_KIND, "update": update, **finite(note), "sha256": checksums}
    described["sha256_of_this"] = _checksum_of_note(described)
    try:
        temporary.mkdir()
        for name, content in files.items():
            write_through(temporary / name, content)
        write_through(temporary / _NOTE, json.dumps(described, indent=1, ensure_ascii=False).encode())
        sync_folder(temporary)
        if final.exists():  # a damaged one, which another attempt has passed by
            shutil.rmtree(final)
        os.rename(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(place)
    for old in _folders(run_folder)[:-_KEPT]:
        shutil.rmtree(old)


def last_checkpoint(run_folder: Path, key: str) -> tuple[Checkpoint | None, list[str]]:
    """The last checkpoint of the run with this key that is whole, and why those after it are not."""
    damages: list[str] = []
    for folder in reversed(_folders(run_folder)):
        try:
            return read_checkpoint(folder, key), damages
        except (OSError, ValueError) as wrong:
            damages.append(f"checkpoint {folder.name} was passed by: {wrong}")
    return None, damages


def read_checkpoint(folder: Path, key: str | None = None) -> Checkpoint:
    """Raises ValueError where anything is not as it was written, or the key is another one."""
    note = read_json(folder / _NOTE)
    check_schema(note, CHECKPOINT_KIND, folder / _NOTE)
    if note.get("sha256_of_this") != _checksum_of_note(note):
        raise ValueError(f"{folder / _NOTE} is damaged: its checksum is another one")
    if key is not None and note["key"] != key:
        raise ValueError(f"{folder} belongs to another run")
    files = {}
    for name, checksum in note["sha256"].items():
        files[name] = (folder / name).read_bytes()
        if _checksum(files[name]) != checksum:
            raise ValueError(f"{folder / name} is damaged: its checksum is another one")
    return Checkpoint(note["update"], note, files)


def remove_leftovers(run_folder: Path) -> None:
    """What a killed process has left under temporary names."""
    for folder in (run_folder, run_folder / CHECKPOINTS):
        for path in folder.glob(".*.tmp"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _folders(run_folder: Path) -> list[Path]:
    """In the order of their updates."""
    found = [path for path in (run_folder / CHECKPOINTS).glob("[0-9]*") if path.name.isdecimal()]
    return sorted(found, key=lambda path: int(path.name))


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checksum_of_note(note: dict[str, Any]) -> str:
    rest = {name: value for name, value in note.items() if name != "sha256_of_this"}
    return _checksum(json.dumps(rest, sort_keys=True).encode())
