"""The folder of a run: who may train in it, and what stands in it before training begins."""

from __future__ import annotations

import dataclasses
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gatedrnn.lab.records import (
    ENVIRONMENT_FILE,
    OPTIONS_FILE,
    RECORD_FILE,
    RECORD_KIND,
    RUN_KIND,
    check_schema,
    read_json,
    remove_leftovers,
    write_json,
)
from gatedrnn.lab.training.run import Run

_LOCK = ".lock"
# May differ from those of a begun run: how often it is saved, and what else is written, is not the run.
_FREE = ("checkpoint_seconds", "tensorboard")


class RefusedError(ValueError):
    """The folder is not this run's, or somebody trains in it at this moment."""


def ended_record(run: Run, out: Path) -> dict[str, Any] | None:
    """The record of this run if it has ended. Raises RefusedError if the folder holds anything else than this run."""
    if begun_run(run, out) is None or not (out / RECORD_FILE).exists():
        return None
    try:
        record = read_json(out / RECORD_FILE)
    except ValueError:
        return None  # it is damaged; the last checkpoint tells the same, and the record is written anew
    check_schema(record, RECORD_KIND, out / RECORD_FILE)
    return record


@contextmanager
def claimed(run: Run, out: Path) -> Iterator[tuple[Run, bool]]:
    """The folder is this process's alone inside the ``with``; the system ends that when the process dies.

    Gives the run with its number of threads, that of the record if there is one, and whether it was begun before.
    """
    out.mkdir(parents=True, exist_ok=True)
    with open(out / _LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(f"{out} is in use: another process is training there") from None
        begun = begun_run(run, out)
        remove_leftovers(out)
        threads = begun.training.threads if begun else run.training.threads or torch.get_num_threads()
        run = dataclasses.replace(run, training=dataclasses.replace(run.training, threads=threads))
        if begun is None:
            write_json(out / OPTIONS_FILE, run.as_json())
        yield run, begun is not None


def write_environment(out: Path, found: dict[str, Any]) -> str | None:
    """Write where the run takes place. Where it goes on elsewhere than it began, add that and say so."""
    path = out / ENVIRONMENT_FILE
    if not path.exists():
        write_json(path, found)
        return None
    try:
        written = read_json(path)
    except ValueError as wrong:
        write_json(path, found)
        return f"written anew: {wrong}"
    before = [written, *written.get("later", [])][-1]
    changes = [name for name in found if found[name] != before.get(name)]
    if not changes:
        return None
    write_json(path, {**written, "later": [*written.get("later", []), found]})
    name = changes[0]
    return f"the run goes on elsewhere than it was ({name}: {before.get(name)}, now {found[name]}): bits may differ"


def begun_run(run: Run, out: Path) -> Run | None:
    """The run that stands in the folder, which must be this one; None if the folder is empty or does not exist."""
    if not (out / OPTIONS_FILE).exists():
        if out.is_dir() and any(not name.startswith(".") for name in os.listdir(out)):
            raise RefusedError(f"{out} is not empty and holds no run: choose another folder")
        return None
    options = read_json(out / OPTIONS_FILE)
    check_schema(options, RUN_KIND, out / OPTIONS_FILE)
    begun = Run.from_json(options)
    difference = _difference(begun, run)
    if difference:
        raise RefusedError(f"{out} holds another run: {difference}; choose another folder")
    return begun


def _difference(begun: Run, asked: Run) -> str | None:
    """The first option that differs, with both values."""
    theirs, ours = begun.as_json(), asked.as_json()
    for part in ("task", "model", "training"):
        for name in dict.fromkeys([*theirs[part], *ours[part]]):
            there, here = theirs[part].get(name), ours[part].get(name)
            if there == here or name in _FREE or (name == "threads" and here is None):
                continue
            return f"{'task' if name == 'name' else name} is {there} there and {here} here"
    return None
