"""What the paper's figures claim, as checks that records can pass or fail.

A curve in the paper has no number to compare with, but it says who was first, who failed, whose time scales grew. These
sentences stand here once, by the paper's labels. A check returns True, False, or None where the runs that it needs are
not there, and says what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gatedrnn.lab.analysis import time_scale_spread
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.report import text
from gatedrnn.lab.report.groups import Group

_GATES = ("softsign", "sigmoid", "refine")


@dataclass(frozen=True)
class Checked:
    """A claim, whether it holds in these runs (None: they do not say), and what was seen."""

    claim: str
    holds: bool | None
    seen: str


class Claim(Protocol):
    """A sentence of the paper that can be checked."""

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """Check it on the groups by the names of their models."""
        ...


@dataclass(frozen=True)
class Before:
    """One model reaches the threshold before others: its median is surely less than that of each."""

    model: str
    others: tuple[str, ...]
    clock: Clock = "update"

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """By medians over seeds; seconds only where both were timed on the same clock."""
        unit = "updates" if self.clock == "update" else "seconds"
        claim = f"{self.model} needs fewer {unit} than {', '.join(self.others)}"
        here = [name for name in self.others if name in groups]
        if threshold is None or self.model not in groups or len(here) < len(self.others):
            missing = [name for name in (self.model, *self.others) if name not in groups]
            return Checked(claim, None, f"not run: {', '.join(missing)}" if missing else "no threshold")
        verdicts: list[bool | None] = []
        seen = []
        for name in here:
            ours, other = groups[self.model], groups[name]
            if self.clock == "seconds" and {run.clock for run in ours.runs + other.runs} != {ours.runs[0].clock}:
                verdicts.append(None)
                seen.append(f"{name}: timed on another engine or machine")
                continue
            a, b = ours.arrivals(threshold, self.clock).median, other.arrivals(threshold, self.clock).median
            verdicts.append(True if a.at_most < b.at_least else False if b.at_most <= a.at_least else None)
            seen.append(f"{name}: {text.median_only(b)}")
        first = groups[self.model].arrivals(threshold, self.clock).median
        return Checked(claim, _all(verdicts), f"median {text.median_only(first)}; " + ", ".join(seen))


@dataclass(frozen=True)
class Fails:
    """No seed of a model reaches the threshold."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """By arrivals."""
        claim = f"{self.model} does not get there"
        if self.model not in groups or threshold is None:
            return Checked(claim, None, f"not run: {self.model}")
        found = groups[self.model].arrivals(threshold)
        return Checked(claim, found.reached == 0, f"{found.reached} of {found.n} reached {text.number(threshold)}")


@dataclass(frozen=True)
class Diverges:
    """A model's training leaves the numbers, for one seed at least."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """By outcomes."""
        claim = f"{self.model} diverges"
        if self.model not in groups:
            return Checked(claim, None, f"not run: {self.model}")
        runs = groups[self.model].runs
        count = sum(run.outcome == "diverged" for run in runs)
        return Checked(claim, count > 0, f"{count} of {len(runs)} runs diverged")


@dataclass(frozen=True)
class LongestTimeScale:
    """At the end the mean time scale of a model is at least ten times that of every other one."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """By the mean over units of the first layer, at the last update that all seeds of a model have."""
        claim = f"the time scales of {self.model} end at least ten times above all others"
        ends = {name: end for name, found in groups.items() if (end := _scales(found)) is not None}
        ours = ends.pop(self.model, None)
        if ours is None or not ends:
            return Checked(claim, None, f"no time scales of {self.model if ours is None else 'another model'}")
        name, largest = max(ends.items(), key=lambda item: item[1][1])
        seen = f"{text.number(ours[1])} steps; next {name} with {text.number(largest[1])}"
        return Checked(claim, ours[1] >= 10 * largest[1], seen)


@dataclass(frozen=True)
class StaysPut:
    """The mean time scale of a model changes by less than a factor of two."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None) -> Checked:
        """From the first to the last update."""
        claim = f"the time scales of {self.model} stay where they began"
        scales = _scales(groups[self.model]) if self.model in groups else None
        if scales is None:
            return Checked(claim, None, f"no time scales of {self.model}")
        begin, end = scales
        return Checked(claim, 0.5 < end / begin < 2, f"{text.number(begin)} steps, then {text.number(end)}")


CLAIMS: dict[str, tuple[Claim, ...]] = {
    "fig:adding_mse": (
        Before("fast", _GATES),
        Before("iterated_fast", ("fast",)),
        Before("NRU", ("fast", "iterated_fast")),
        Fails("softsign"),
    ),
    "fig:adding_runtime": (
        Before("fast", _GATES, "seconds"),
        Before("iterated_fast", ("fast",), "seconds"),
        Fails("softsign"),
    ),
    "fig:adding_timescale": (LongestTimeScale("fast"), StaysPut("chrono")),
    "fig:copy_accuracy": (Before("fast", _GATES), Before("iterated_fast", ("fast",)), Diverges("NRU")),
    "fig:copy_acc_runtime": (
        Before("fast", _GATES, "seconds"),
        Before("iterated_fast", ("fast",), "seconds"),
        Diverges("NRU"),
    ),
    "fig:copy_loss": (Before("fast", _GATES, "seconds"), Diverges("NRU")),
}


def _scales(found: Group) -> tuple[float, float] | None:
    curve = time_scale_spread([run.metrics for run in found.runs], "l0")
    return (curve.mean[0], curve.mean[-1]) if curve.x else None


def _all(verdicts: list[bool | None]) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True
