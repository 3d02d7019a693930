"""When a run reached a threshold: the first evaluation at or beyond it, or how far it was watched in vain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: One line of metrics.jsonl.
Evaluation = Mapping[str, Any]
Clock = Literal["update", "seconds"]
#: Beyond this a sum over seeds or a margin of an axis might leave the numbers.
LARGEST = 1e300


@dataclass(frozen=True)
class Arrival:
    """Where a run reached a threshold.

    ``at`` is None for a run that has not reached it; then ``watched`` says to where it was looked at: later it may have
    reached it (the observation is *censored*). A run that diverged will never arrive, and has ``watched = inf``.
    """

    at: float | None
    watched: float

    @property
    def earliest(self) -> float:
        """It cannot have arrived before this."""
        return self.watched if self.at is None else self.at

    @property
    def latest(self) -> float:
        """It cannot arrive after this."""
        return math.inf if self.at is None else self.at


def updates_to(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> int | None:
    """Updates until the first evaluation at or beyond the threshold; None if there is none."""
    found = _first(metrics, metric, threshold, lower_is_better)
    return None if found is None else int(found["update"])


def seconds_to(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> float | None:
    """Seconds of training until the first evaluation at or beyond the threshold; None if there is none."""
    found = _first(metrics, metric, threshold, lower_is_better)
    return None if found is None else float(found["seconds"])


def arrival(
    metrics: Sequence[Evaluation],
    metric: str,
    threshold: float,
    lower_is_better: bool,
    clock: Clock = "update",
    diverged: bool = False,
) -> Arrival:
    """The arrival of one run by the clock of updates or of seconds."""
    found = _first(metrics, metric, threshold, lower_is_better)
    last = float(metrics[-1][clock]) if metrics else 0.0
    if found is not None:
        return Arrival(float(found[clock]), last)
    return Arrival(None, math.inf if diverged else last)


def _first(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> Evaluation | None:
    for evaluation in metrics:
        value = finite(evaluation.get(metric))
        if value is not None and (value <= threshold if lower_is_better else value >= threshold):
            return evaluation
    return None


def finite(value: Any) -> float | None:
    """The number, or None for what is missing (null in a record), not a number, or too large to be summed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return number if abs(number) <= LARGEST else None
