"""The folder of a run: ownership, lock, and content before training starts."""

from __future__ import annotations

import dataclasses
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gatedrnn.files import check_folder
from gatedrnn.lab.fields import is_beside
from gatedrnn.lab.records import (
    CHECKPOINTS,
    ENVIRONMENT_FILE,
    METRICS_FILE,
    OPTIONS_FILE,
    RECORD_FILE,
    RECORD_KIND,
    RUN_KIND,
    Checkpoint,
    ForeignError,
    SchemaError,
    check_schema,
    move_aside,
    read_json,
    remove_leftovers,
    whole_checkpoints,
    write_json,
)
from gatedrnn.lab.training.options import Training
from gatedrnn.lab.training.refused import InUseError, RefusedError
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.same_data import TASK_FILE, check_checkpoint, check_record

_LOCK = ".lock"
# May differ from those of a begun run: how often it is saved, what else is written, and where the data is. A custom
# task may have an option of such a name on which its result depends.
_FREE = ("checkpoint_seconds", "tensorboard", "data", "processes")
# Where a longer run differs from the one that it extends.
_LENGTH = ("updates", "epochs")
_OUTCOMES = ("finished", "target_reached", "stopped_early", "budget_spent", "diverged")


@dataclass(frozen=True)
class Begun:
    """The content of the folder of a started run."""

    options: dict[str, Any]
    #: The keys that its checkpoints may have: its own, and those of the shorter runs that it extends.
    keys: tuple[str, ...]
    #: Whether the run that is asked for is longer than the one in the folder.
    extended: bool
    #: Whether it has a larger time budget.
    more_time: bool

    @property
    def threads(self) -> int | None:
        """The number of threads it was started with."""
        threads: int | None = self.options["training"]["threads"]
        return threads

    @property
    def processes(self) -> int:
        """The number of processes of its last part."""
        return self.options["training"].get("processes") or 1


class Claim:
    """A folder that is this process's alone: ``check`` it before each write. Without a lock it is another process's."""

    def __init__(self, out: Path, lock: int | None) -> None:
        self.out, self._lock = out, None if lock is None else os.fstat(lock)
        #: Whether the run was begun before.
        self.begun = False
        #: From which it may continue, the last one first.
        self.checkpoints: list[Checkpoint] = []
        #: What was found damaged and moved aside.
        self.notes: list[str] = []

    @property
    def writes(self) -> bool:
        """Whether this process writes here."""
        return self._lock is not None

    def check(self) -> None:
        """Raise RefusedError if the folder was removed or replaced, or if links were put into it."""
        try:
            found = os.lstat(self.out / _LOCK)
        except FileNotFoundError:
            found = None
        assert self._lock is not None
        if found is None or (found.st_dev, found.st_ino) != (self._lock.st_dev, self._lock.st_ino):
            raise RefusedError(
                f"{self.out} was removed or replaced while this run was training in it; run the same command again"
            )
        _refuse_links(self.out, (CHECKPOINTS,))


def ended_record(run: Run, out: Path) -> dict[str, Any] | None:
    """The record of this run if it has ended. Raises RefusedError if the folder holds anything else than this run."""
    begun = begun_run(run, out)
    if begun is None or begun.extended or not (out / RECORD_FILE).exists():
        return None
    try:
        record = read_json(out / RECORD_FILE)
        check_schema(record, RECORD_KIND, out / RECORD_FILE)
    except SchemaError as other:
        raise RefusedError(f"{other}; choose another folder") from None
    except ValueError:
        return None  # it is damaged; the last checkpoint has the same data, and the record is written again
    if record.get("key") == run.key():
        return record if _is_whole(record) and not _is_passed(record, run, begun) else None
    if _is_passed(record, run, begun):
        return None
    raise RefusedError(f"{out / RECORD_FILE} belongs to another run; choose another folder")


def _is_passed(record: Mapping[str, Any], run: Run, begun: Begun) -> bool:
    """Whether the run goes on after the end in the record: that of a shorter run, or of a smaller time budget."""
    if record.get("key") == run.key():
        return begun.more_time and record.get("outcome") == "budget_spent"
    return record.get("key") in begun.keys


def _is_whole(record: Mapping[str, Any]) -> bool:
    """Whether the record has what is shown of a run that has ended; anything else is damage."""
    metric, number = record.get("metric"), int | float
    tested = {name: record.get(name) for name in ("validation", "test") if "test" in record}
    return (
        record.get("outcome") in _OUTCOMES
        and isinstance(metric, str)
        and all(isinstance(record.get(name), number) for name in ("updates", "seconds"))
        and "diverged_at" in record
        and isinstance(record.get("fingerprint", {}), dict)
        and all(
            isinstance(part, dict) and isinstance(part.get(metric, "missing"), number | None)
            for part in (record.get("final"), *tested.values())
        )
        and (not tested or isinstance(record["validation"].get("epoch", "missing"), number | None))
    )


@contextmanager
def claimed(
    run: Run,
    out: Path,
    processes: int = 1,
    declared: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Iterator[tuple[Run, Claim]]:
    """The folder is this process's alone inside the ``with``; the system ends that when the process dies.

    Gives the claim, and the run with its number of threads, that with which it was begun, and of ``processes``.
    ``sizes`` are those of the training set. Where the run is refused, nothing in the folder is changed.
    """
    _check_processes(run, out, begun_run(run, out), processes)  # refuse before anything is created
    try:
        check_folder(out)
    except OSError as wrong:
        raise RefusedError(str(wrong)) from None
    out.mkdir(parents=True, exist_ok=True)
    lock = os.open(out / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(
                f"{out} is in use by another training process; wait until it ends, or choose another folder"
            ) from None
        claim = Claim(out, lock)
        claim.check()  # between opening and locking the folder may have been replaced
        begun = begun_run(run, out)
        claim.begun = begun is not None
        claim.checkpoints, damaged = _checkpoints(out, begun)
        if begun is not None:
            _check_content(run, out, begun, claim.checkpoints, sizes or {})
        remove_leftovers(out)
        threads = begun.threads if begun else run.training.threads or torch.get_num_threads()
        training = dataclasses.replace(run.training, threads=threads, processes=processes if processes > 1 else None)
        run = dataclasses.replace(run, training=training)
        _write_options(run, out, begun, declared)
        claim.notes = [
            f"checkpoint {folder.name} is damaged ({wrong}); moved aside to {move_aside(folder).name}"
            for folder, wrong in damaged.items()
        ]
        if begun is not None and begun.processes != processes:
            claim.notes.append(f"resuming with a different number of processes ({begun.processes}, now {processes})")
        yield run, claim
    finally:
        os.close(lock)


def _check_content(run: Run, out: Path, begun: Begun, checkpoints: list[Checkpoint], sizes: Mapping[str, int]) -> None:
    """Raise RefusedError where the run cannot go on with what the folder has: different data, or no time left."""
    for checkpoint in checkpoints:
        check_checkpoint(run.task, checkpoint, sizes)
    check_record(run.task, _record(out), out)
    counts: dict[str, Any] = checkpoints[0].note["counts"] if checkpoints else {"outcome": None}
    if counts["outcome"] == "budget_spent" and (begun.extended or begun.more_time):
        seconds = counts["seconds"] + counts["seconds_evaluation"]
        if run.training.spends(seconds):
            raise RefusedError(
                f"{out} contains a run that has taken {seconds:.3g} s and so has spent the time budget of "
                f"{run.training.budget_seconds:g} s; choose a larger budget_seconds to continue it"
            )


def write_environment(out: Path, found: dict[str, Any]) -> list[str]:
    """Write the environment of the run. If it resumes in a different one, add that; returns what to note of it."""
    path = out / ENVIRONMENT_FILE
    if not path.exists():
        write_json(path, found)
        return []
    try:
        written = read_json(path)
        before = [written, *written.get("later", [])][-1]
        changes = [name for name in found if found[name] != before.get(name)]
    except (ValueError, TypeError, AttributeError) as wrong:
        aside = move_aside(path)
        write_json(path, found)
        return [f"{path.name} was damaged ({wrong}); moved aside to {aside.name} and written again"]
    if not changes:
        return []
    write_json(path, {**written, "later": [*written.get("later", []), found]})
    notes = []
    if TASK_FILE in changes and TASK_FILE in before:  # an older version did not write it
        notes.append(
            "the file of the task has changed since this run was begun; the result may depend on both versions"
        )
    if elsewhere := [name for name in changes if name != TASK_FILE]:
        name = elsewhere[0]
        was, now = (_described(environment.get(name)) for environment in (before, found))
        notes.append(f"resumed in a different environment ({name}: {was}, now {now}); results may not be bit-identical")
    return notes


def _described(value: Any) -> str:
    """A value of an environment in words; a commit by the beginning of its name."""
    if isinstance(value, dict):
        return f"{str(value.get('head'))[:9]}{' with local changes' if value.get('dirty') else ''}"
    return "unknown" if value is None else str(value)


def begun_run(run: Run, out: Path) -> Begun | None:
    """The content of the folder, which must be this run or a shorter version of it; None if it is empty.

    Raises RefusedError with the reason for anything else. Nothing is changed.
    """
    _refuse_links(out, (_LOCK, OPTIONS_FILE, ENVIRONMENT_FILE, METRICS_FILE, RECORD_FILE, CHECKPOINTS))
    if not (out / OPTIONS_FILE).exists():
        if out.is_dir() and any(not name.startswith(".") for name in os.listdir(out)):
            raise RefusedError(f"{out} is not empty and contains no run; choose another folder")
        return None
    try:
        options = read_json(out / OPTIONS_FILE)
    except ValueError as damaged:
        raise ValueError(f"{damaged}; restore the file or choose another folder") from None
    check_schema(options, RUN_KIND, out / OPTIONS_FILE)
    for part in ("task", "model", "training"):
        if not isinstance(options.get(part), dict):
            raise ValueError(
                f"{out / OPTIONS_FILE} is damaged: it has no {part}; restore the file or choose another folder"
            )
    before = options.get("extends", [])
    if not isinstance(before, list) or not isinstance(options.get("key"), str):
        raise ValueError(f"{out / OPTIONS_FILE} is damaged: it has no key; restore the file or choose another folder")
    theirs = _shown(options, run, out)
    differences = _differences(theirs, run)
    more_time = _has_more_time(theirs["training"], run.training)
    if more_time:
        differences.pop("budget_seconds", None)
    extended = bool(differences) and all(name in _LENGTH for name in differences)
    if extended:
        _check_extension(run, theirs, out)
    elif differences:
        name, (there, here) = next(iter(differences.items()))
        raise RefusedError(
            f"{out} contains another run: {'task' if name == 'name' else name} is {there}, requested {here}; "
            "choose another folder"
        )
    elif options["key"] != run.key():
        raise RefusedError(f"{out} contains another run: the key in {OPTIONS_FILE} differs; choose another folder")
    return Begun(options, (options["key"], *map(str, before)), extended, more_time)


def _shown(options: Mapping[str, Any], run: Run, out: Path) -> dict[str, dict[str, Any]]:
    """The options in the folder, with neutral values for those that did not exist when they were written."""
    if options["task"].get("name") != run.task.name:  # the options of another task are not known here
        return {part: dict(options[part]) for part in ("task", "model", "training")}
    try:
        return Run.from_json(dict(options), like=run).options()
    except (ValueError, TypeError) as wrong:
        raise RefusedError(f"{out / OPTIONS_FILE} cannot be used here: {wrong}; choose another folder") from None


def _differences(theirs: Mapping[str, Mapping[str, Any]], asked: Run) -> dict[str, tuple[Any, Any]]:
    """The options that differ, with both values."""
    ours, found = asked.options(), {}
    for part in ("task", "model", "training"):
        for name in dict.fromkeys([*theirs[part], *ours[part]]):
            there, here = theirs[part].get(name), ours[part].get(name)
            free = name in _FREE and is_beside(getattr(asked, part), name)
            if there == here or free or (name == "threads" and here is None):
                continue
            found[name] = (there, here)
    return found


def _has_more_time(theirs: Mapping[str, Any], asked: Training) -> bool:
    """Whether the time budget is larger than that of the run in the folder."""
    there, here = theirs.get("budget_seconds"), asked.budget_seconds
    return isinstance(there, int | float) and (here is None or here > there)


def _check_processes(run: Run, out: Path, begun: Begun | None, processes: int) -> None:
    """Raise RefusedError for a different number of processes than before, unless it is requested."""
    if begun is not None and begun.processes != processes and run.training.processes is None:
        raise RefusedError(
            f"{out} was started with {begun.processes} processes, but there are {processes}: start as many as before, "
            f"or pass --processes {processes} to resume with a different order of summation"
        )


def _check_extension(run: Run, theirs: Mapping[str, Mapping[str, Any]], out: Path) -> None:
    """Raise RefusedError unless the requested run extends the one in the folder."""
    for name in _LENGTH:
        there, here = theirs["training"].get(name), getattr(run.training, name)
        if (there is None) != (here is None):
            unit, other = _LENGTH if theirs["training"].get("epochs") is None else reversed(_LENGTH)
            raise RefusedError(f"{out} contains a run whose length is in {unit}, not in {other}; choose another folder")
        if there is not None and here < there:
            raise RefusedError(
                f"{out} contains a longer run: {name} is {there}, requested {here}; choose another folder"
            )
    if run.training.schedule in ("linear", "cosine"):
        raise RefusedError(
            f"{out} contains a shorter run that cannot be extended: the learning rate of the schedule "
            f"{run.training.schedule} depends on the length; choose another folder"
        )


def _checkpoints(out: Path, begun: Begun | None) -> tuple[list[Checkpoint], dict[Path, str]]:
    """Those from which the run may continue. Raises RefusedError if one is another run's or of a newer format."""
    try:
        return whole_checkpoints(out, begun.keys if begun else ())
    except (ForeignError, SchemaError) as wrong:
        raise RefusedError(f"{wrong}; choose another folder") from None


def _write_options(run: Run, out: Path, begun: Begun | None, declared: Mapping[str, Any] | None) -> None:
    """The options as the folder is to have them, where it does not have them yet."""
    kept = (
        {}
        if begun is None
        else {name: begun.options[name] for name in ("declared", "extends") if name in begun.options}
    )
    added = {} if declared is None else {"declared": dict(declared)}
    resized = begun is not None and begun.processes != (run.training.processes or 1)
    changed: dict[str, Any] = {"processes": run.training.processes} if resized else {}
    if begun is not None and begun.more_time:
        changed["budget_seconds"] = run.training.budget_seconds
    # Before the options: from them follows which records are passed. A damaged record stays: it is written again.
    if begun is not None and (record := _record(out)) and _is_passed(record, run, begun):
        (out / RECORD_FILE).unlink()
    if begun is None:
        write_json(out / OPTIONS_FILE, {**run.as_json(), **added})
    elif begun.extended:
        write_json(out / OPTIONS_FILE, {**run.as_json(), **kept, **added, "extends": list(begun.keys)})
    elif changed or (added and kept.get("declared") != added["declared"]):
        write_json(out / OPTIONS_FILE, {**begun.options, **added, "training": {**begun.options["training"], **changed}})


def _record(out: Path) -> dict[str, Any]:
    """What the record has; nothing where it is damaged or not there."""
    try:
        return read_json(out / RECORD_FILE)
    except (FileNotFoundError, ValueError):
        return {}


def _refuse_links(out: Path, names: tuple[str, ...]) -> None:
    """Raise RefusedError for a symbolic link: its target does not belong to this run."""
    for path in (*(out / name for name in names), *(out / CHECKPOINTS).glob("*")):
        if path.is_symlink():
            raise RefusedError(f"{path} is a symbolic link: remove it, or choose another folder")
