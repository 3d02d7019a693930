"""The runs below a folder, read and checked: what cannot be read becomes a warning and not an end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.records import find_runs, read_run
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
        if self.record:
            return finite((self.record.get(which) or {}).get(self.metric))
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
        try:
            found = read_run(folder)
            runs.append(_run(name, found, warnings))
        except (ValueError, OSError, RecursionError) as wrong:
            warnings.append(f"{name}: not read: {_here(wrong, folder)}")
            continue
        notes = (found.record or {}).get("notes") or []  # what the run itself found damaged when it went on
        warnings.extend(f"{name}: {_here(warning, folder)}" for warning in (*found.warnings, *notes))
    return _without_copies(runs, warnings), warnings


def _here(message: object, folder: Path) -> str:
    """The message with the folder left out: the same records give the same report wherever they lie."""
    return str(clean(str(message).replace(f"{folder}{os.sep}", "")))


def _run(name: str, found: Any, warnings: list[str]) -> LabRun:
    options = clean(found.options)
    parts = {part: options.get(part) for part in ("task", "model", "training")}
    for part, value in parts.items():
        if not isinstance(value, dict):
            raise ValueError(f"options.json has no {part}")
    task, model, training = parts["task"], parts["model"], parts["training"]
    seed, key = training.get("seed"), options.get("key")
    if not isinstance(seed, int) or not isinstance(key, str) or not isinstance(task.get("name"), str):
        raise ValueError("options.json lacks training.seed, task.name or key")
    record = clean(found.record) if found.record is not None else {}
    if record and record.get("key", key) != key:
        raise ValueError("record.json belongs to other options (its key differs)")
    metrics = [clean(line) for line in found.metrics if _is_evaluation(line)]
    if len(metrics) < len(found.metrics):
        warnings.append(
            f"{name}: {len(found.metrics) - len(metrics)} lines of metrics.jsonl are no evaluations; left out"
        )
    metric, lower_is_better = _metric(record, metrics)
    outcome = str(record.get("outcome", "unfinished"))
    clock = _clock(clean(found.environment) or {}, training)
    return LabRun(name, key, seed, task, model, training, metric, lower_is_better, metrics, record, outcome, clock)


def _is_evaluation(line: object) -> bool:
    if not isinstance(line, Mapping):
        return False
    update, seconds = finite(line.get("update")), finite(line.get("seconds"))
    return update is not None and update == int(update) and seconds is not None


def _metric(record: Mapping[str, Any], metrics: list[dict[str, Any]]) -> tuple[str, bool]:
    if isinstance(record.get("metric"), str) and isinstance(record.get("lower_is_better"), bool):
        return record["metric"], record["lower_is_better"]
    known = [name for name in _LOWER_IS_BETTER if metrics and name in metrics[0]]
    return (known[0], _LOWER_IS_BETTER[known[0]]) if known else ("loss", True)


def _clock(environment: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """What a time was measured on. Times are compared only where all of this is the same."""
    engine = str(environment.get("engine") or "unknown").partition(":")[0]
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
