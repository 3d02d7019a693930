"""Progress of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Status:
    """How far a run is; given to the progress function after each update, each evaluation, and with each note."""

    update: int
    updates: int
    #: The loss of the last batch; None before the first.
    loss: float | None
    #: The last line of the metrics; None before the first.
    metrics: dict[str, Any] | None
    updates_a_second: float | None
    #: Until the last update, evaluations included.
    seconds_left: float | None
    #: Whether ``metrics`` is new.
    evaluated: bool = False
    #: A message: what was found damaged, or from where the run continues.
    note: str | None = None
    #: How many epochs have passed; None where there are none.
    epoch: float | None = None


Progress = Callable[[Status], None]


def ignore(status: Status) -> None:
    """A progress function that does nothing."""
