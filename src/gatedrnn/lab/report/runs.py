"""The runs below a folder, read and checked: what cannot be read becomes a warning and not an end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.analysis import finite
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
from gatedrnn.lab.report.text import clean

# For a run without record.json, which would say it: is less of the metric better?
_LOWER_IS_BETTER = {"mse": True, "perplexity": True, "accuracy": False}


@dataclass(frozen=True)
class LabRun:
    """One run as the report sees it. ``outcome`` is the record's, or "unfinished" where there is none."""

    name: str
    key: str
    seed: int
    task: dict[str, Any]
    model: dict[str, Any]
    training: dict[str, Any]
    metric: str
    lower_is_better: bool
    metrics: list[dict[str, Any]]
    record: dict[str, Any]
    outcome: str
    clock: str

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
        recorded = self.record.get(which, {})
        if self.metric in recorded:
            return finite(recorded[self.metric])
        values = [value for value in (finite(line.get(self.metric)) for line in self.metrics) if value is not None]
        if not values:
            return None
        return values[-1] if which == "final" else min(values) if self.lower_is_better else max(values)


def load(root: Path) -> tuple[list[LabRun], list[str]]:
    """The readable runs below a folder, in the order of their names, and what there is to warn of."""
    runs: list[LabRun] = []
    warnings: list[str] = []
    for folder in find_runs(root):
        name = clean(folder.relative_to(root).as_posix())
        said: list[str] = []
        try:
            found = read_run(folder)
            runs.append(_run(name, found, said))
            said = [*found.warnings, *said]
        except (ValueError, OSError) as wrong:
            said = [f"not read: {wrong}"]
        warnings += [f"{name}: {_here(text, folder)}" for text in said]
    return _without_copies(runs, warnings), warnings


def _here(message: str, folder: Path) -> str:
    """The message with the folder left out: the same records give the same report wherever they lie."""
    return str(clean(message.replace(f"{folder}{os.sep}", "")))


def _run(name: str, found: RunRecord, said: list[str]) -> LabRun:
    options = _options(clean(found.options))
    task, model, training, key = options["task"], options["model"], options["training"], options["key"]
    record = _kept(RECORD_FILE, clean(found.record or {}), fields.RECORD, said)
    if record.get("key", key) != key:
        raise ValueError(f"{RECORD_FILE} belongs to other options (its key differs)")
    environment = _kept(ENVIRONMENT_FILE, clean(found.environment or {}), fields.ENVIRONMENT, said)
    metric, lower_is_better = _metric(record, found.metrics)
    metrics = _evaluations(found.metrics, metric, said)
    said += record.get("notes", [])  # what the run itself found damaged when it was resumed
    return LabRun(
        name=name,
        key=key,
        seed=training["seed"],
        task=task,
        model=model,
        training=training,
        metric=metric,
        lower_is_better=lower_is_better,
        metrics=metrics,
        record=record,
        outcome=record.get("outcome", "unfinished"),
        clock=_clock(environment, training),
    )


def _options(written: dict[str, Any]) -> dict[str, Any]:
    """The options; ValueError where a field is wrong or missing that says which run this is."""
    wrong: list[tuple[str, str]] = []
    options = fields.kept(written, fields.OPTIONS, wrong)
    if wrong:
        raise ValueError(f"{OPTIONS_FILE}: " + "; ".join(f"{field} {what}" for field, what in wrong))
    if lacking := fields.missing(options, fields.NEEDED):
        raise ValueError(f"{OPTIONS_FILE} has no {', '.join(lacking)}")
    return options


def _kept(file: str, written: dict[str, Any], wanted: fields.Fields, said: list[str]) -> dict[str, Any]:
    wrong: list[tuple[str, str]] = []
    found = fields.kept(written, wanted, wrong)
    said += [f"{file}: {field} {what}; left out" for field, what in wrong]
    return found


def _evaluations(lines: Sequence[object], metric: str, said: list[str]) -> list[dict[str, Any]]:
    """The lines that are evaluations, each update once and in order, without the fields that are wrong."""
    wanted = fields.evaluation(metric)
    found: dict[int, dict[str, Any]] = {}
    damages: dict[str, list[str]] = {}
    strangers, order, again = [], [], []
    for number, line in enumerate(lines, start=1):
        wrong: list[tuple[str, str]] = []
        evaluation = fields.kept(clean(line), wanted, wrong) if isinstance(line, Mapping) else {}
        if not {"update", "seconds"} <= evaluation.keys():
            strangers.append(number)
            continue
        for field, what in wrong:
            damages.setdefault(field, []).append(f"line {number}: {field} {what}; left out")
        update = int(evaluation["update"])
        order.append(update)
        if update in found:
            again.append(update)
        else:
            found[update] = evaluation
    said += [f"{METRICS_FILE}, {several[0]}{_and_more(len(several) - 1)}" for several in damages.values()]
    if strangers:
        more = _and_more(len(strangers) - 1)
        said.append(f"{METRICS_FILE}, line {strangers[0]}: no evaluation with update and seconds; left out{more}")
    if again:
        said.append(
            f"{METRICS_FILE}: update {again[0]} stands there twice{_and_more(len(again) - 1)}: two processes may have "
            "written here; the first line of each update counts"
        )
    elif order != sorted(order):
        said.append(f"{METRICS_FILE}: the updates are not in order; sorted")
    return [found[update] for update in sorted(found)]


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count else ""


def _metric(record: Mapping[str, Any], metrics: Sequence[object]) -> tuple[str, bool]:
    if "metric" in record and "lower_is_better" in record:
        return record["metric"], record["lower_is_better"]
    first = metrics[0] if metrics else None
    known = [name for name in _LOWER_IS_BETTER if isinstance(first, Mapping) and name in first]
    return (known[0], _LOWER_IS_BETTER[known[0]]) if known else ("loss", True)


def _clock(environment: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """What a time was measured on. Times are compared only where all of this is the same."""
    engine = (environment.get("engine") or "unknown").partition(":")[0]
    processor = environment.get("processor") or "unknown processor"
    threads = training.get("threads")
    count = "unknown threads" if threads is None else "1 thread" if threads == 1 else f"{threads} threads"
    device = training.get("device") or "cpu"
    return f"{engine} engine, {count}, {processor}" + ("" if device == "cpu" else f", {device}")


def _without_copies(runs: list[LabRun], warnings: list[str]) -> list[LabRun]:
    """A run that lies there twice counts once, as far as it got: a copy is not another seed."""
    kept: dict[str, LabRun] = {}
    for run in runs:
        other = kept.get(run.key)
        if other is None:
            kept[run.key] = run
            continue
        better, worse = (
            (run, other) if (run.complete, run.last_update) > (other.complete, other.last_update) else (other, run)
        )
        kept[run.key] = better
        warnings.append(f"{worse.name}: the same run as {better.name}; counted once")
    return sorted(kept.values(), key=lambda run: run.name)
