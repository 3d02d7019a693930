"""Small runs for the tests, and how they are compared."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.models import Model
from gatedrnn.lab.records import CHECKPOINTS, read_checkpoint, read_run
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training, train

#: A checkpoint after every update.
SMALL = Run(
    Adding(10),
    Model(hidden_size=8),
    Training(updates=30, batch_size=8, evaluate_every=10, evaluation_size=20, checkpoint_seconds=0.0, threads=1),
)
CLOCKS = ("seconds", "seconds_evaluation", "seconds_an_epoch", "updates_a_second", "resumed", "notes")


def changed(run: Run = SMALL, **options: Any) -> Run:
    """The run with other options of training."""
    return dataclasses.replace(run, training=dataclasses.replace(run.training, **options))


class StopError(Exception):
    """Ends a run as a crash would."""


def stop_at(update: int) -> Any:
    """A progress function that ends the run after this update, before its checkpoint."""

    def progress(status: Any) -> None:
        if status.update == update and status.note is None:
            raise StopError

    return progress


def stopped(folder: Path, update: int, run: Run = SMALL) -> None:
    """The run, begun or resumed, and killed in this update."""
    with pytest.raises(StopError):
        train(run, folder, stop_at(update))


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below the folder, with its time."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def result(folder: Path) -> dict[str, Any]:
    """Everything a run leaves that must be the same to the bit: metrics, record, weights, optimiser and generators."""
    found = read_run(folder)
    assert found.record is not None and found.warnings == []
    last = max((folder / CHECKPOINTS).glob("[0-9]*"))
    files = read_checkpoint(last).files
    return {
        "metrics": [{name: value for name, value in line.items() if name != "seconds"} for line in found.metrics],
        "record": {name: value for name, value in found.record.items() if name not in CLOCKS},
        "weights": files["weights.safetensors"],
        "state": files["state.safetensors"],
        "update": last.name,
    }


def valid_json(path: Path) -> Any:
    """As json.loads, but NaN and Infinity are errors."""

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
