"""The runs below a folder, read and checked: what cannot be read becomes a warning and not an end."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.records import ENVIRONMENT_FILE, OPTIONS_FILE, RECORD_FILE, RunRecord, find_runs, read_run
from gatedrnn.lab.report import fields
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

    ``measured_as`` names the setting that was measured, where it is another one with the same update.
    """

    rounds: tuple[float, ...]
    clock: str
    measured_as: str = ""


@dataclass(frozen=True)
class LabRun:
    """One run as the report sees it. ``outcome`` is the record's, or "unfinished" where there is none.

    ``slot`` is where the sweep that made it says it belongs; None for a run that no sweep made, or an older one.
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
    #: How long one of its updates takes, measured apart from it; None where its seconds are its own.
    update_time: UpdateTime | None = None

    @property
    def last_update(self) -> int:
        """To which update it was measured."""
        return int(self.metrics[-1]["update"]) if self.metrics else 0

    @property
    def ended(self) -> str:
        """The outcome in words."""
        words = self.outcome.replace("_", " ")
        if self.outcome == "diverged":
            at = self.record.get("diverged_at")
            return words if at is None else f"diverged at update {at}"
        return f"{words} at update {self.last_update}" if self.outcome in ("unfinished", "budget_spent") else words

    @property
    def complete(self) -> bool:
        """Whether it ran as far as its options say, or to an end that more time would not change."""
        return self.outcome in ("finished", "target_reached", "diverged")

    def value(self, which: str) -> float | None:
        """The metric in the "final" or the "best" evaluation, so far where the run has not ended."""
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
        """The metric on test data, with the weights of the best validation; None where it was not tested."""
        return finite(self.record.get("test", {}).get(self.measure.name))

    def tested_in(self, column: str) -> float | None:
        """The metric on test data, in one of the bins of the task if the column is one."""
        bins = self.record.get("test", {}).get("bins", {})
        return finite(bins[column]) if column in bins else self.tested

    @property
    def seconds_an_epoch(self) -> float | None:
        """Of training; None where nobody counted epochs."""
        return finite(self.record.get("seconds_an_epoch"))


def load(root: Path, measures: Mapping[str, Measure] | None = None) -> tuple[list[LabRun], list[str]]:
    """The readable runs below a folder, in the order of their names, and what there is to warn of.

    What a run measures is said by its own files, else by another run of the same task, else by ``measures``, by task.
    """
    opened: dict[Path, _Opened] = {}
    said: dict[Path, list[str]] = {}
    for folder in find_runs(root):
        said[folder] = []
        try:
            opened[folder] = _open(read_run(folder), said[folder])
        except (ValueError, OSError) as wrong:
            said[folder] = [f"not read: {wrong}"]
    known = dict(measures or {})
    known |= {found.task: found.measure for found in opened.values() if found.measure is not None}
    runs = [_run(_name(folder, root), found, known, said[folder]) for folder, found in opened.items()]
    warnings = [
        f"{_name(folder, root)}: {_here(warning, folder)}" for folder, several in said.items() for warning in several
    ]
    for same in (lambda run: run.key, lambda run: run.slot):
        runs = _without_copies(runs, same, warnings)
    return sorted(runs, key=lambda run: run.name), warnings


@dataclass(frozen=True)
class _Opened:
    """A run whose files were read and checked, but for its metrics."""

    options: dict[str, Any]
    record: dict[str, Any]
    environment: dict[str, Any]
    slot: Slot | None
    lines: list[dict[str, Any]]

    @property
    def task(self) -> str:
        return str(self.options["task"]["name"])

    @property
    def measure(self) -> Measure | None:
        return measure_in(self.record) or measure_in(self.options)


def _name(folder: Path, root: Path) -> str:
    return str(clean(folder.relative_to(root).as_posix()))


def _here(message: str, folder: Path) -> str:
    """The message with the folder left out: the same records give the same report wherever they lie."""
    return str(clean(message.replace(f"{folder}{os.sep}", "")))


def _open(found: RunRecord, said: list[str]) -> _Opened:
    said += found.warnings
    options = _options(clean(found.options), said)
    record = _kept(RECORD_FILE, clean(found.record or {}), fields.RECORD, said)
    if record.get("key", options["key"]) != options["key"]:
        raise ValueError(f"{RECORD_FILE} belongs to other options (its key differs)")
    environment = _kept(ENVIRONMENT_FILE, clean(found.environment or {}), fields.ENVIRONMENT, said)
    said += record.get("notes", [])  # what the run itself found damaged when it was resumed
    return _Opened(options, record, environment, _slot(options, said), found.metrics)


def _run(name: str, found: _Opened, known: Mapping[str, Measure], said: list[str]) -> LabRun:
    training = found.options["training"]
    measure = found.measure or known.get(found.task, LOSS)
    return LabRun(
        name=name,
        key=found.options["key"],
        seed=training["seed"],
        task=found.options["task"],
        model=found.options["model"],
        training=training,
        measure=measure,
        metrics=evaluations(found.lines, measure.name, said),
        record=found.record,
        outcome=found.record.get("outcome", "unfinished"),
        clock=clock_of(found.environment, training),
        slot=found.slot,
    )


def _options(written: dict[str, Any], said: list[str]) -> dict[str, Any]:
    """The options; ValueError where a field is wrong or missing that says which run this is."""
    wrong: list[tuple[str, str]] = []
    options = fields.kept(written, fields.OPTIONS, wrong)
    if wrong:
        raise ValueError(f"{OPTIONS_FILE}: " + "; ".join(f"{field} {what}" for field, what in wrong))
    if lacking := fields.missing(options, fields.NEEDED):
        raise ValueError(f"{OPTIONS_FILE} has no {', '.join(lacking)}")
    return _kept(OPTIONS_FILE, options, {**fields.MEASURE, "declared": fields.DECLARED}, said)


def _slot(options: Mapping[str, Any], said: list[str]) -> Slot | None:
    """What a sweep declared, if it is all there and speaks of this run."""
    declared = options.get("declared")
    if declared is None:
        return None
    task, seed = options["task"]["name"], options["training"]["seed"]
    declared = {"task": task, "setting": "", **declared}
    if lacking := fields.missing(declared, Slot._fields):
        said.append(f"{OPTIONS_FILE}: declared has no {', '.join(lacking)}; left out")
    elif (declared["task"], declared["seed"]) != (task, seed):
        said.append(f"{OPTIONS_FILE}: declared speaks of another task or seed than the options; left out")
    else:
        return Slot(*(declared[name] for name in Slot._fields))
    return None


def _kept(file: str, written: dict[str, Any], wanted: fields.Fields, said: list[str]) -> dict[str, Any]:
    wrong: list[tuple[str, str]] = []
    found = fields.kept(written, wanted, wrong)
    said += [f"{file}: {field} {what}; left out" for field, what in wrong]
    return found


def clock_of(environment: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """What a time was measured on. Times are compared only where all of this is the same."""
    engine = (environment.get("engine") or "unknown").partition(":")[0]
    processor = environment.get("processor") or "unknown processor"
    threads = training.get("threads")
    count = "unknown threads" if threads is None else "1 thread" if threads == 1 else f"{threads} threads"
    device = training.get("device") or "cpu"
    return f"{engine} engine, {count}, {processor}" + ("" if device == "cpu" else f", {device}")


def _without_copies(runs: list[LabRun], same: Callable[[LabRun], Hashable], warnings: list[str]) -> list[LabRun]:
    """A run that lies there twice counts once, as far as it got: a copy is not another seed."""
    kept: dict[Hashable, LabRun] = {}
    for run in runs:
        place = same(run)
        place = run.name if place is None else place
        other = kept.get(place)
        if other is None:
            kept[place] = run
            continue
        better, worse = (
            (run, other) if (run.complete, run.last_update) > (other.complete, other.last_update) else (other, run)
        )
        kept[place] = better
        warnings.append(f"{worse.name}: the same run as {better.name}; counted once")
    return list(kept.values())
