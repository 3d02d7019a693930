"""When a run reached a threshold: the first evaluation at or beyond it, or how far it was observed without reaching
it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

#: One line of metrics.jsonl.
Evaluation = Mapping[str, Any]
Clock = Literal["update", "seconds"]
#: Beyond this a sum over seeds or a margin of an axis might overflow.
LARGEST = 1e300


@dataclass(frozen=True)
class Arrival:
    """Where a run reached a threshold.

    ``at`` is None for a run that has not reached it; then ``watched`` is how long it was observed: it may reach it
    later (the observation is *censored*). A run that diverged will never reach it, and has ``watched = inf``.
    ``before`` is the evaluation before the one that reached it; 0 if there is none.
    """

    at: float | None
    watched: float
    before: float = 0.0

    @property
    def not_yet(self) -> float:
        """The last time at which it is known not to have reached it."""
        return self.watched if self.at is None else self.before

    @property
    def earliest(self) -> float:
        """It cannot have reached it before this."""
        return self.watched if self.at is None else self.at

    @property
    def latest(self) -> float:
        """It cannot reach it after this."""
        return math.inf if self.at is None else self.at


def updates_to(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> int | None:
    """Updates until the first evaluation at or beyond the threshold; None if there is none."""
    place = _first(metrics, metric, threshold, lower_is_better)
    return None if place is None else int(metrics[place]["update"])


def seconds_to(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> float | None:
    """Seconds of training until the first evaluation at or beyond the threshold; None if there is none."""
    place = _first(metrics, metric, threshold, lower_is_better)
    return None if place is None else float(metrics[place]["seconds"])


def arrival(
    metrics: Sequence[Evaluation],
    metric: str,
    threshold: float,
    lower_is_better: bool,
    clock: Clock = "update",
    diverged: bool = False,
) -> Arrival:
    """When one run reached the threshold, in updates or in seconds."""
    last = float(metrics[-1][clock]) if metrics else 0.0
    place = _first(metrics, metric, threshold, lower_is_better)
    if place is None:
        return Arrival(None, math.inf if diverged else last)
    return Arrival(float(metrics[place][clock]), last, float(metrics[place - 1][clock]) if place else 0.0)


def _first(metrics: Sequence[Evaluation], metric: str, threshold: float, lower_is_better: bool) -> int | None:
    """The place of the first evaluation at or beyond the threshold."""
    for place, evaluation in enumerate(metrics):
        value = finite(evaluation.get(metric))
        if value is not None and (value <= threshold if lower_is_better else value >= threshold):
            return place
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
