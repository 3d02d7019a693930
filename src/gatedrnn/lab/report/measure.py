"""What a run measures: name, direction, unit and scale, from its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """A quantity. ``log`` says whether its axis is logarithmic."""

    name: str
    lower_is_better: bool
    unit: str = ""
    log: bool = True

    @property
    def label(self) -> str:
        """The label of its axis."""
        name = self.name.replace("_", " ")
        return f"{name} ({self.unit})" if self.unit else name


#: What every run has; used if no other measure is named.
LOSS = Measure("loss", lower_is_better=True)


def measure_in(written: Mapping[str, Any]) -> Measure | None:
    """The measure that a record or the options name; None where they name none.

    Without a scale, a metric that is to be minimised gets a logarithmic axis, others a linear one.
    """
    if not {"metric", "lower_is_better"} <= written.keys():
        return None
    lower = bool(written["lower_is_better"])
    log = written["metric_scale"] == "log" if "metric_scale" in written else lower
    return Measure(written["metric"], lower, written.get("metric_unit") or "", log)
