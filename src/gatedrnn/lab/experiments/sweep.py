"""All runs of an experiment, with a launcher: complete runs are skipped, incomplete ones resumed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.experiments.base import DeclaredRun
from gatedrnn.lab.experiments.launchers import Job, Launcher, Message
from gatedrnn.lab.records import OPTIONS_FILE
from gatedrnn.lab.training import RefusedError, Run
from gatedrnn.lab.training.folder import begun_run, ended_record


@dataclass
class RunState:
    """One run of a sweep and how far it is.

    ``state`` is waiting, running, failed, or the outcome in the record of a run that has ended.
    """

    name: str
    run: Run
    folder: Path
    #: Which run of which experiment it is.
    declared: dict[str, Any] | None = None
    state: str = "waiting"
    #: Whether it ended in an earlier sweep.
    before: bool = False
    update: int = 0
    #: Of the metric, at the last evaluation.
    value: float | None = None
    rate: float | None = None
    diverged_at: int | None = None
    seconds: float | None = None
    #: What it said last, until its next news: that it prepares data, or that some of it was left out.
    note: str | None = None
    #: Why it failed.
    reason: str | None = None
    #: The update at which this sweep started or resumed it; None before the first message.
    first_update: int | None = None
    #: The total number of updates; None for a length in epochs, before the first message.
    updates: int | None = None

    @property
    def job(self) -> Job:
        """What a launcher makes."""
        return Job(self.name, self.run, self.folder, self.declared)

    @property
    def cost(self) -> float:
        """Its approximate time relative to the others. The runs of a sweep have lengths in the same unit."""
        training = self.run.training
        length = training.epochs if training.updates is None else training.updates * training.batch_size
        return self.run.task.steps * self.run.model.cost * (length or 1)

    def take_record(self, record: dict[str, Any]) -> None:
        """The outcome and the last numbers."""
        self.state, self.update = record["outcome"], record["updates"]
        self.value = record["final"][record["metric"]]
        self.diverged_at, self.seconds = record["diverged_at"], record["seconds"]


#: changed(run): called when the state of a run has changed, and when there is news of a running one.
Changed = Callable[[RunState], None]


class Sweep:
    """Runs below one folder, made by a launcher.

    Raises ValueError for a folder with other content, before anything is written.
    """

    def __init__(self, runs: Sequence[DeclaredRun], out: Path, launcher: Launcher) -> None:
        if (out / OPTIONS_FILE).exists():
            raise RefusedError(f"{out} contains a single run; choose another folder for the sweep")
        self._out, self._launcher = out, launcher
        self.runs = [_state(declared, out, launcher.threads) for declared in runs]
        self._begin = time.monotonic()

    def go(self, changed: Changed) -> None:
        """Run all runs, the longest first. If this ends for any reason, its processes end too; another sweep resumes
        them.

        A run that fails does not stop the others. Raises LauncherError if the launcher cannot make them, and OSError if
        the folder cannot be written to.
        """
        self._begin = time.monotonic()
        waiting = [run for run in self.runs if run.state == "waiting"]
        if not waiting:
            return
        waiting.sort(key=lambda run: run.cost, reverse=True)
        by_name = {run.name: run for run in waiting}
        launcher = self._launcher
        try:
            launcher.open(self._out, max(run.job.threads for run in waiting))
            for run in waiting:
                run.folder.parent.mkdir(parents=True, exist_ok=True)
            while waiting or launcher.under_way:
                for run in [*waiting]:
                    if launcher.has_room(run.job):
                        waiting.remove(run)
                        launcher.start(run.job)
                name, message = launcher.news()
                _take(by_name[name], message)
                changed(by_name[name])
        finally:
            launcher.close()

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the pace so far; None before there is one. Runs that end at a target end sooner."""
        done = left = 0.0
        for run in self.runs:
            share = first = 0.0
            if run.updates is not None and run.first_update is not None:
                share, first = run.update / run.updates, run.first_update / run.updates
            done += run.cost * (share - first)
            if run.state in ("waiting", "running"):
                left += run.cost * (1.0 - share)
        return left * (time.monotonic() - self._begin) / done if done else None


def _state(declared: DeclaredRun, out: Path, threads: int) -> RunState:
    """The state of the run in its folder. Raises RefusedError if the folder contains another run."""
    folder = out.absolute() / declared.folder  # a process of another machine may run elsewhere
    try:
        record, begun = ended_record(declared.run, folder), begun_run(declared.run, folder)
    except RefusedError:
        raise
    except ValueError as damage:
        return RunState(declared.folder, declared.run, folder, declared.says, "failed", reason=str(damage))
    if begun is not None:
        threads = begun.threads or threads
    run = dataclasses.replace(declared.run, training=dataclasses.replace(declared.run.training, threads=threads))
    state = RunState(declared.folder, run, folder, declared.says, updates=run.training.updates)
    if record is not None:
        state.take_record(record)
        state.before = True
    return state


def _take(run: RunState, message: Message) -> None:
    """What the message says about the run."""
    if message.started:
        run.state = "running"
    run.note = message.note
    if message.update is not None and message.note is None:  # a note may come before the run knows where it resumes
        if run.first_update is None:
            run.first_update = message.update
        run.update, run.value, run.rate = message.update, message.value, message.rate
        run.updates = message.updates or run.updates
    if message.record is not None:
        run.take_record(message.record)
    if message.failed is not None:
        run.state, run.reason = "failed", message.failed
