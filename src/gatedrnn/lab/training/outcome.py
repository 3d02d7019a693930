"""How a run ends, and the record of it."""

from __future__ import annotations

from typing import Any

from gatedrnn.lab.models import Network, gate_spread, measured_time_scale_spread, time_scale_spread
from gatedrnn.lab.records import RECORD_KIND, SCHEMA, json_safe
from gatedrnn.lab.tasks import Batch, Task
from gatedrnn.lab.training.pace import Pace
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.schedule import without_a_best
from gatedrnn.lab.training.state import Counts


def outcome_of(run: Run, pace: Pace, counts: Counts, metrics: list[dict[str, Any]]) -> str | None:
    """How the run ends with the last evaluation; None if it does not."""
    task, training, measured = run.task, run.training, metrics[-1]
    if measured["loss"] is None:  # not finite
        return "diverged"
    value = measured[task.metric]  # None if it overflows before the loss does, as a perplexity may
    if training.target is not None and value is not None and not better(task, training.target, value):
        return "target_reached"
    if training.stop_patience is not None:
        waited = without_a_best([line[task.metric] for line in metrics], task.lower_is_better)
        if waited >= training.stop_patience:
            return "stopped_early"
    if counts.update >= pace.updates:
        return "finished"
    if training.spends(counts.seconds + counts.seconds_evaluation):
        return "budget_spent"
    return None


def better(task: Task, first: float, second: float) -> bool:
    """Whether the first value of the metric is better than the second."""
    return first < second if task.lower_is_better else first > second


def make_record(
    run: Run,
    pace: Pace,
    counts: Counts,
    metrics: list[dict[str, Any]],
    network: Network,
    batch: Batch,
    tested: bool,
) -> dict[str, Any]:
    """What record.json holds. The gates are measured on some of the sequences of a batch. ``tested``: the task has a
    test split."""
    task, data = run.task, batch.input.to(run.training.device)
    best = best_of(task, metrics)
    record = {
        "schema": SCHEMA,
        "kind": RECORD_KIND,
        "outcome": counts.outcome,
        "updates": counts.update,
        "diverged_at": counts.diverged_at,
        "seconds": counts.seconds,
        "seconds_evaluation": counts.seconds_evaluation,
        "updates_a_second": counts.update / counts.seconds if counts.seconds else None,
        "threads": run.training.threads,
        "processes": run.training.processes or 1,
        "parameters": sum(p.numel() for p in network.parameters() if p.requires_grad),
        **task.measured(),
        "final": _short(task, metrics[-1]),
        "best": _short(task, best),
        "gates": gate_spread(network, data, batch.lengths),
        "time_scales": time_scale_spread(network),
        "measured_time_scales": measured_time_scale_spread(network, data, batch.lengths),
        "resumed": counts.resumed,
        "notes": counts.notes,
        "key": run.key(),
    }
    for name in ("gates", "time_scales", "measured_time_scales"):  # a cell without a forget gate has none
        if not record[name]:
            del record[name]
    if fingerprint := task.fingerprint():
        record["fingerprint"] = fingerprint
    if pace.updates_an_epoch is not None:
        record["epochs"] = pace.epoch(counts.update)
        record["seconds_an_epoch"] = counts.seconds / counts.update * pace.updates_an_epoch if counts.update else None
    if pace.updates_an_epoch is not None or tested:
        record["validation"] = {**_short(task, best), "epoch": pace.epoch(best["update"])}
    return json_safe(record)  # type: ignore[no-any-return]


def best_of(task: Task, metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """The first of the best evaluations."""
    best = metrics[0]
    for measured in metrics[1:]:
        value, least = measured[task.metric], best[task.metric]
        if value is not None and (least is None or better(task, value, least)):
            best = measured
    return best


def _short(task: Task, measured: dict[str, Any]) -> dict[str, Any]:
    return {name: measured[name] for name in ("update", "loss", task.metric)}
