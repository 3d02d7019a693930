"""Whether the data of a run is that of its folder: digests, sizes, and the file of a custom task."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gatedrnn.lab.records import ENVIRONMENT_FILE, RECORD_FILE, Checkpoint, read_json
from gatedrnn.lab.tasks import Stream, Task
from gatedrnn.lab.training.refused import RefusedError

#: The field of the environment with the digest of the file that defines a custom task.
TASK_FILE = "task_file"
_PACKAGE = __name__.partition(".")[0]
_DIGITS = 16


def sizes_of(stream: Stream) -> dict[str, int]:
    """What is known of the size of the training set; for tasks without a fingerprint it is all that is compared."""
    sizes = {"samples": stream.samples_an_epoch, "updates an epoch": stream.updates_an_epoch}
    return {name: int(size) for name, size in sizes.items() if size is not None}


def check_checkpoint(task: Task, checkpoint: Checkpoint, sizes: Mapping[str, int]) -> None:
    """Raise RefusedError where the checkpoint was made with other data."""
    what = f"the checkpoint at update {checkpoint.update}"
    check_fingerprint(task, what, checkpoint.note.get("data"))
    made = checkpoint.note.get("sizes", {})  # a checkpoint of an older version has none
    other = [f"{size} {name}, before {made[name]}" for name, size in sizes.items() if made.get(name, size) != size]
    if other:
        raise _different(task, what, other[0], "data")


def check_fingerprint(task: Task, what: str, made: Mapping[str, str] | None, *names: str) -> None:
    """Raise RefusedError where the fingerprint is not that of the task; only ``names`` of it count where given."""
    if not made:  # the task has no fingerprint, or had none when this was made
        return
    here = task.fingerprint()
    other = [name for name in names or made if made.get(name) != here.get(name)]
    if other:
        raise _different(task, what, ", ".join(other), "files")


def check_record(task: Task, record: Mapping[str, Any], out: Path) -> None:
    """Raise RefusedError where the record was made with other data."""
    made = record.get("fingerprint")
    check_fingerprint(task, str(out / RECORD_FILE), made if isinstance(made, dict) else None)


def _different(task: Task, what: str, differences: str, same: str) -> RefusedError:
    return RefusedError(
        f"{what} was made with different data ({differences}) than the task {task.name} reads now; use the same {same}"
    )


def notes_on_ended(task: Task, record: Mapping[str, Any], out: Path, say: Callable[[str], None]) -> list[str]:
    """What to say where the record of a finished run is the answer. Raises RefusedError where its data was other data.

    The record is the answer without the data too: a result may be read where the data is not.
    """
    notes = []
    if record.get("fingerprint"):
        try:
            task.open(say)
            check_record(task, record, out)
        except RefusedError:
            raise
        except Exception as unreadable:  # a custom task may raise anything
            why = str(unreadable).partition("\n")[0] or type(unreadable).__name__
            notes.append(f"the data of this finished run was not compared with that of the task {task.name}: {why}")
    digest = task_file_digest(task)
    if digest is not None and _noted_digest(out) not in (None, digest):
        notes.append("the file of the task has changed since this run ended; this is the result of the version before")
    return notes


def task_file_digest(task: Task) -> str | None:
    """A digest of the file that defines a custom task; None for a built-in task, and for one without a file."""
    kind = type(task)
    if kind.__module__.partition(".")[0] == _PACKAGE:
        return None
    try:
        path = inspect.getsourcefile(kind)
        return None if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()[:_DIGITS]
    except (OSError, TypeError):  # defined in a notebook or at the prompt
        return None


def _noted_digest(out: Path) -> str | None:
    """That of the last time the run was trained; None where it is not known."""
    try:
        written = read_json(out / ENVIRONMENT_FILE)
        digest = [written, *written.get("later", [])][-1].get(TASK_FILE)
    except (OSError, ValueError, TypeError, AttributeError):  # damage is reported where the file is written
        return None
    return digest if isinstance(digest, str) else None
