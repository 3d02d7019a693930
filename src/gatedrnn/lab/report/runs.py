"""The runs below a folder, read and validated: a file that cannot be read gives a warning, not an error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.analysis.bootstrap import ALL
from gatedrnn.lab.records import (
    ENVIRONMENT_FILE,
    METRICS_FILE,
    OPTIONS_FILE,
    RECORD_FILE,
    RunRecord,
    find_runs,
    read_run,
)
from gatedrnn.lab.report import fields
from gatedrnn.lab.report.contradictions import contradictions
from gatedrnn.lab.report.copies import without_copies
from gatedrnn.lab.report.evaluations import evaluations
from gatedrnn.lab.report.measure import LOSS, Measure, measure_in
from gatedrnn.lab.report.text import clean


class Slot(NamedTuple):
    """Which run of a grid this is: of which task, model and seed, at which budget, and in which setting of a search."""

    grid: str
    budget: str
    task: str
    model: str
    seed: int
    setting: str = ""

    @property
    def named(self) -> str:
        """Grid, budget and model: "adding/paper/fast"."""
        return "/".join(filter(None, (self.grid, self.budget, self.model)))


@dataclass(frozen=True)
class UpdateTime:
    """The seconds of one update in each round of a measurement, and what they were measured on.

    ``measured_as`` names the setting that was measured, if it is a different one with the same update.
    """

    rounds: tuple[float, ...]
    clock: str
    measured_as: str = ""


@dataclass(frozen=True)
class LabRun:
    """One run, as read by the report. ``outcome`` is the record's, or "unfinished" without a record.

    ``slot`` is its place as declared by its sweep; None for a run that was not made by a sweep, or by an older version.
    """

    name: str
    key: str
    seed: int
    task: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    measure: Measure
    metrics: list[dict[str, Any]]
    record: dict[str, Any]
    outcome: str
    clock: str
    slot: Slot | None = None
    #: The time of one of its updates, measured separately; None if the run's own times are used.
    update_time: UpdateTime | None = None
    #: The epochs that its place declares; None for a run without epochs or without a place.
    declared_epochs: int | None = None

    @property
    def last_update(self) -> int:
        """The update of its last evaluation."""
        return int(self.metrics[-1]["update"]) if self.metrics else 0

    @property
    def outcome_in_words(self) -> str:
        """The outcome alone."""
        return "time budget spent" if self.outcome == "budget_spent" else self.outcome.replace("_", " ")

    @property
    def ended(self) -> str:
        """The outcome with what belongs to it: the update, or the part of the declared epochs."""
        words = self.outcome_in_words
        if self.outcome == "finished" and self.part:
            return self.part
        if self.outcome == "diverged":
            at = self.record.get("diverged_at")
            return words if at is None else f"diverged at update {at}"
        return f"{words} at update {self.last_update}" if self.outcome in ("unfinished", "budget_spent") else words

    @property
    def part(self) -> str:
        """The part of the declared epochs that it was made for, "first 5 of 20 epochs"; empty for all of them."""
        epochs, declared = self.training.get("epochs"), self.declared_epochs
        return f"first {epochs} of {declared} epochs" if epochs and declared and epochs < declared else ""

    @property
    def complete(self) -> bool:
        """Whether it ran to the end of what was declared, which may be its target or its patience, or diverged."""
        return self.outcome in ("target_reached", "stopped_early", "diverged") or (
            self.outcome == "finished" and not self.part
        )

    @property
    def fingerprint(self) -> dict[str, str]:
        """Digests of the data it was trained on; empty if they are not known."""
        return dict(self.record.get("fingerprint", {}))

    def value(self, which: str) -> float | None:
        """The metric in the "final" or the "best" evaluation; of an unfinished run, so far."""
        metric = self.measure.name
        recorded = self.record.get(which, {})
        if metric in recorded:
            return finite(recorded[metric])
        values = [value for value in (finite(line.get(metric)) for line in self.metrics) if value is not None]
        if not values:
            return None
        return values[-1] if which == "final" else min(values) if self.measure.lower_is_better else max(values)

    @property
    def tested(self) -> float | None:
        """The metric on test data, with the weights of the best validation; None if it was not tested."""
        return finite(self.record.get("test", {}).get(self.measure.name))

    def tested_in(self, part: str) -> float | None:
        """The metric on a part of the test data; on all of it for its task or "all"."""
        if part in (self.task["name"], ALL):
            return self.tested
        return finite(self.record.get("test", {}).get("bins", {}).get(part))

    @property
    def seconds_an_epoch(self) -> float | None:
        """Training time per epoch; None for runs without epochs."""
        return finite(self.record.get("seconds_an_epoch"))


def load(root: Path, measures: Mapping[str, Measure] | None = None) -> tuple[list[LabRun], list[str]]:
    """The readable runs below a folder, in the order of their names, and the warnings.

    What a run measures is taken from its own files, else from another run of the same task, else from ``measures``.
    """
    opened: dict[Path, _Opened] = {}
    said: dict[Path, list[str]] = {}
    for folder in find_runs(root):
        said[folder] = []
        try:
            opened[folder] = _open(read_run(folder), said[folder])
        except (ValueError, OSError) as wrong:
            said[folder] = [f"skipped: {wrong}"]
    known = dict(measures or {})
    known |= {found.task: found.measure for found in opened.values() if found.measure is not None}
    runs = [_run(_name(folder, root), found, known, said[folder]) for folder, found in opened.items()]
    warnings = [
        f"{_name(folder, root)}: {_here(warning, folder)}" for folder, several in said.items() for warning in several
    ]
    return sorted(without_copies(runs, warnings), key=lambda run: run.name), warnings


@dataclass(frozen=True)
class _Opened:
    """A run whose files were read and validated, except its metrics."""

    options: dict[str, Any]
    record: dict[str, Any]
    environment: dict[str, Any]
    slot: Slot | None
    lines: list[dict[str, Any]]
    #: Whether a part of its metrics could not be read.
    torn: bool

    @property
    def task(self) -> str:
        return str(self.options["task"]["name"])

    @property
    def measure(self) -> Measure | None:
        return measure_in(self.record) or measure_in(self.options)


def _name(folder: Path, root: Path) -> str:
    return str(clean(folder.relative_to(root).as_posix()))


def _here(message: str, folder: Path) -> str:
    """The message without the folder: the same records give the same report wherever they are stored."""
    return str(clean(message.replace(f"{folder}{os.sep}", "")))


def _open(found: RunRecord, said: list[str]) -> _Opened:
    said += found.warnings
    options = _options(clean(found.options), said)
    record = _kept(RECORD_FILE, clean(found.record or {}), fields.RECORD, said)
    if record.get("key", options["key"]) != options["key"]:
        raise ValueError(f"{RECORD_FILE} does not belong to {OPTIONS_FILE}: the keys differ")
    environment = _kept(ENVIRONMENT_FILE, clean(found.environment or {}), fields.ENVIRONMENT, said)
    said += record.get("notes", [])  # warnings that the run recorded when it was resumed
    torn = any(METRICS_FILE in warning for warning in found.warnings)
    return _Opened(options, record, environment, _slot(options, said), found.metrics, torn)


def _run(name: str, found: _Opened, known: Mapping[str, Measure], said: list[str]) -> LabRun:
    training = found.options["training"]
    measure = found.measure or known.get(found.task, LOSS)
    wrong: list[str] = []
    metrics = evaluations(found.lines, measure.name, wrong)
    if not found.torn and not wrong:  # else they are damaged, as a warning says
        wrong = contradictions(found.record, metrics, measure)
    said += wrong
    return LabRun(
        name=name,
        key=found.options["key"],
        seed=training["seed"],
        task=found.options["task"],
        model=found.options["model"],
        training=training,
        measure=measure,
        metrics=metrics,
        record=found.record,
        outcome=found.record.get("outcome", "unfinished"),
        clock=clock_of(found.environment, training),
        slot=found.slot,
    )


def _options(written: dict[str, Any], said: list[str]) -> dict[str, Any]:
    """The options; ValueError if a field that identifies the run is invalid or missing."""
    wrong: list[tuple[str, str]] = []
    options = fields.kept(written, fields.OPTIONS, wrong)
    if wrong:
        raise ValueError(f"{OPTIONS_FILE}: " + "; ".join(f"{field} {what}" for field, what in wrong))
    if lacking := fields.missing(options, fields.NEEDED):
        raise ValueError(f"{OPTIONS_FILE} has no {', '.join(lacking)}")
    return _kept(OPTIONS_FILE, options, {**fields.MEASURE, "declared": fields.DECLARED}, said)


def _slot(options: Mapping[str, Any], said: list[str]) -> Slot | None:
    """The place that the sweep declared, if it is complete and matches this run."""
    declared = options.get("declared")
    if declared is None:
        return None
    task, seed = options["task"]["name"], options["training"]["seed"]
    declared = {"task": task, "setting": "", **declared}
    if lacking := fields.missing(declared, Slot._fields):
        said.append(f"{OPTIONS_FILE}: declared has no {', '.join(lacking)}; ignored")
    elif (declared["task"], declared["seed"]) != (task, seed):
        said.append(f"{OPTIONS_FILE}: declared names a different task or seed than the options; ignored")
    else:
        return Slot(*(declared[name] for name in Slot._fields))
    return None


def _kept(file: str, written: dict[str, Any], wanted: fields.Fields, said: list[str]) -> dict[str, Any]:
    wrong: list[tuple[str, str]] = []
    found = fields.kept(written, wanted, wrong)
    said += [f"{file}: {field} {what}; ignored" for field, what in wrong]
    return found


def clock_of(environment: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """What a time was measured on. Times are compared only if all of this is the same."""
    engine = (environment.get("engine") or "unknown").partition(":")[0]
    processor = environment.get("processor") or "unknown processor"
    threads = training.get("threads")
    count = "unknown threads" if threads is None else "1 thread" if threads == 1 else f"{threads} threads"
    device = training.get("device") or "cpu"
    return f"{engine} engine, {count}, {processor}" + ("" if device == "cpu" else f", {device}")
