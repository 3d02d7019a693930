"""Where the files of a run contradict each other: a part of them was lost or changed after it was written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.records import METRICS_FILE, RECORD_FILE
from gatedrnn.lab.report.measure import Measure

_ROUNDING = 1e-9  # JSON of another writer may have fewer digits


def contradictions(record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], measure: Measure) -> list[str]:
    """What the record says differently than the evaluations, one warning for each; none without a record."""
    if not record:
        return []
    if wrong := _end(record, metrics):
        return [wrong]  # other differences follow from it
    values = [value for value in (finite(line.get(measure.name)) for line in metrics) if value is not None]
    if not values:
        return []
    best = min(values) if measure.lower_is_better else max(values)
    found = [_value(record, "final", measure.name, finite(metrics[-1].get(measure.name)))]
    found += [_value(record, which, measure.name, best) for which in ("best", "validation")]
    return [wrong for wrong in found if wrong is not None]


def _end(record: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> str | None:
    """The last evaluation is of the last update; only a run that diverges does so after it."""
    last = int(metrics[-1]["update"]) if metrics else None
    updates, final = finite(record.get("updates")), finite(record.get("final", {}).get("update"))
    if record.get("outcome") == "diverged" and last is not None and updates is not None and updates > last:
        updates = None
    for name, end in (("updates", updates), ("final.update", final)):
        if end is not None and end != last:
            there = "has no evaluation" if last is None else f"ends at update {last}"
            return f"{METRICS_FILE} {there}, but in {RECORD_FILE}, {name} is {int(end)}"
    return None


def _value(record: Mapping[str, Any], which: str, metric: str, expected: float | None) -> str | None:
    written = finite(record.get(which, {}).get(metric))
    if written is None or expected is None or math.isclose(written, expected, rel_tol=_ROUNDING):
        return None
    return f"{RECORD_FILE}: {which}.{metric} is {written:.6g}, but {METRICS_FILE} has {expected:.6g}"
