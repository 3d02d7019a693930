"""Checkpoints: folders that are written atomically, list their content, and are checked before use."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.files import sync_folder, write_through
from gatedrnn.lab.records.run import RECORD_FILE, SCHEMA, SchemaError, check_schema, read_json
from gatedrnn.lab.records.values import json_safe

CHECKPOINTS = "checkpoints"
CHECKPOINT_KIND = "gatedrnn checkpoint"
_NOTE = "checkpoint.json"
_KEPT = 2  # the last one, and the one before it in case that is damaged


class ForeignError(ValueError):
    """A checkpoint that belongs to another run."""


@dataclass(frozen=True)
class Checkpoint:
    """The files of a checkpoint and what was noted beside them."""

    update: int
    note: dict[str, Any]
    files: dict[str, bytes]


def write_checkpoint(run_folder: Path, update: int, note: dict[str, Any], files: dict[str, bytes]) -> None:
    """Put the checkpoint down whole, then remove all but the last two.

    There must be none of a later update: before a run continues, what was found damaged is moved aside, and what is not
    part of the run is removed.
    """
    place = run_folder / CHECKPOINTS
    place.mkdir(exist_ok=True)
    final, temporary = place / f"{update:08d}", place / f".{update:08d}.{os.getpid()}.tmp"
    checksums = {name: _checksum(content) for name, content in files.items()}
    described = {"schema": SCHEMA, "kind": CHECKPOINT_KIND, "update": update, **json_safe(note), "sha256": checksums}
    described["sha256_of_this"] = _checksum_of_note(described)
    try:
        temporary.mkdir()
        for name, content in files.items():
            write_through(temporary / name, content)
        write_through(temporary / _NOTE, json.dumps(described, indent=1, ensure_ascii=False).encode())
        sync_folder(temporary)
        if final.exists():  # of the same update, from before the run was continued
            shutil.rmtree(final)
        os.rename(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(place)
    for old in _folders(run_folder)[:-_KEPT]:
        _remove(old)


def remove_checkpoint(run_folder: Path, update: int) -> None:
    """Remove the checkpoint of this update."""
    _remove(run_folder / CHECKPOINTS / f"{update:08d}")


def whole_checkpoints(run_folder: Path, keys: Collection[str]) -> tuple[list[Checkpoint], dict[Path, str]]:
    """The checkpoints that are whole, the last one first, and the damaged ones with what is wrong. Nothing is changed.

    Raises ForeignError for one that is whole and has none of these keys, and SchemaError for one of another format.
    """
    whole: list[Checkpoint] = []
    damaged: dict[Path, str] = {}
    for folder in reversed(_folders(run_folder)):
        try:
            whole.append(read_checkpoint(folder, keys))
        except (ForeignError, SchemaError):
            raise
        except (OSError, ValueError) as wrong:
            if folder.exists():  # else it was removed, because there are later ones
                damaged[folder] = str(wrong)
    return whole, damaged


def last_checkpoint(run_folder: Path, keys: Collection[str]) -> tuple[Checkpoint, dict[Path, str]]:
    """The last whole checkpoint, and the damaged ones. Raises ValueError with advice if there is none."""
    whole, damaged = whole_checkpoints(run_folder, keys)
    if whole:
        return whole[0], damaged
    what = f"all checkpoints in {run_folder} are damaged" if damaged else f"{run_folder} has no checkpoint"
    if (run_folder / RECORD_FILE).exists():  # a finished run is not resumed
        raise ValueError(f"{what}, and the run has finished; train it again in another folder")
    raise ValueError(f"{what}{'' if damaged else ' yet'}; resume the run with the command that started it")


def read_checkpoint(folder: Path, keys: Collection[str] | None = None) -> Checkpoint:
    """Raises ValueError where anything is not as it was written, ForeignError where its key is not one of these."""
    note = read_json(folder / _NOTE)
    check_schema(note, CHECKPOINT_KIND, folder / _NOTE)
    if note.get("sha256_of_this") != _checksum_of_note(note):
        raise ValueError(f"{folder / _NOTE}: checksum mismatch")
    update, checksums = note.get("update"), note.get("sha256")
    if not isinstance(update, int) or not isinstance(checksums, dict) or any(Path(n).name != n for n in checksums):
        raise ValueError(f"{folder / _NOTE} is damaged: it does not list the files of the checkpoint")
    if keys is not None and note.get("key") not in keys:
        raise ForeignError(f"{folder} belongs to another run")
    files = {}
    for name, checksum in checksums.items():
        files[name] = (folder / name).read_bytes()
        if _checksum(files[name]) != checksum:
            raise ValueError(f"{folder / name}: checksum mismatch")
    return Checkpoint(update, note, files)


def move_aside(path: Path) -> Path:
    """Rename a damaged file or folder to an unused name in the same folder; returns the new path."""
    number = 1
    while (aside := path.with_name(f"damaged-{path.name}-{number}")).exists():
        number += 1
    os.rename(path, aside)
    return aside


def remove_leftovers(run_folder: Path) -> None:
    """Temporary files that a killed process left."""
    for folder in (run_folder, run_folder / CHECKPOINTS):
        for path in folder.glob(".*.tmp"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _remove(folder: Path) -> None:
    removed = folder.parent / f".{folder.name}.{os.getpid()}.tmp"
    os.rename(folder, removed)  # so that nobody who reads it meanwhile finds half of it
    shutil.rmtree(removed)


def _folders(run_folder: Path) -> list[Path]:
    """In the order of their updates."""
    found = [path for path in (run_folder / CHECKPOINTS).glob("[0-9]*") if path.name.isdecimal()]
    return sorted(found, key=lambda path: int(path.name))


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checksum_of_note(note: dict[str, Any]) -> str:
    rest = {name: value for name, value in note.items() if name != "sha256_of_this"}
    return _checksum(json.dumps(rest, sort_keys=True).encode())
