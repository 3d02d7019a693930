"""The paper's statements about its figures, as checks that records can pass or fail.

A curve in the paper has no number to compare with, but it shows which model was first, which failed and whose time
scales grew. The sentences are part of the declared experiments; ``checks.py`` defines how each is checked. A check
returns True or False only where the runs decide beyond their uncertainty, otherwise None, with what was observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gatedrnn.lab.analysis import Factor, Middle, factor_between, factors, finite, middle_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.report import text
from gatedrnn.lab.report.groups import Group
from gatedrnn.lab.report.runs import LabRun, UpdateTime

#: The smallest number of seeds that can decide a claim.
FEWEST = 3
_ORDERS_OF_MAGNITUDE = 10.0
_STILL = 2.0
_COMPARABLE = 2.0
#: How far a ratio of times may be from the paper's.
NEAR = 0.05


@dataclass(frozen=True)
class Checked:
    """What was checked, whether it holds in these runs (None: undecided), and what was observed."""

    what: str
    holds: bool | None
    seen: str


def all_of(verdicts: Sequence[bool | None]) -> bool | None:
    """Whether all hold: False as soon as one does not, None if one is undecided."""
    return False if False in verdicts else None if None in verdicts else True


class Claim(Protocol):
    """A sentence of the paper that can be checked."""

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """Check it on the groups by the names of their models."""
        ...


@dataclass(frozen=True)
class Before:
    """One model reaches the threshold before others: the factor between them is above 1, and its interval too."""

    model: str
    others: tuple[str, ...]

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """Seed by seed; seconds only where both were timed on the same clock."""
        unit = "updates" if clock == "update" else "seconds"
        what = f"{self.model} needs fewer {unit} than {', '.join(self.others)}"
        if threshold is None or self.model not in groups:
            return _not_run(what, self.model)
        ours = groups[self.model]
        verdicts: list[bool | None] = []
        seen = [f"{self.model}: median {text.median_only(ours.arrivals(threshold, clock).median)}"]
        for name in self.others:
            holds: bool | None = None
            if name not in groups:
                seen.append(f"{name}: not run")
            elif clock == "seconds" and len({run.clock for run in (*ours.runs, *groups[name].runs)}) > 1:
                seen.append(f"{name}: timed on a different engine or machine")
            else:
                found = factor_between(
                    ours.arrival_of_each(threshold, clock), groups[name].arrival_of_each(threshold, clock)
                )
                holds = _above(found, 1.0)
                median = text.median_only(groups[name].arrivals(threshold, clock).median)
                seen.append(f"{name}: median {median}, {_times(found, 'as many')}")
            verdicts.append(holds)
        return Checked(what, all_of(verdicts), "; ".join(seen))


@dataclass(frozen=True)
class Fails:
    """A model does not reach the threshold although another one, trained no longer, does."""

    model: str
    beside: str

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """A run that was stopped early shows only that it had not reached the threshold by then."""
        what = f"{self.model} does not reach the threshold although {self.beside} does"
        lacking = [name for name in (self.model, self.beside) if name not in groups]
        if threshold is None or lacking:
            return _not_run(what, *lacking)
        arrivals = groups[self.model].arrival_of_each(threshold)
        others = groups[self.beside].arrival_of_each(threshold).values()
        enough = max((math.inf if other.at is None else other.at for other in others), default=math.inf)
        runs = groups[self.model].runs
        waiting = [run for run in runs if arrivals[run.seed].at is None]
        failed = [run for run in waiting if run.complete and arrivals[run.seed].watched >= enough]
        cut = [run.last_update for run in waiting if not run.complete]
        reached = len(runs) - len(waiting)
        seen = [f"{reached} of {len(runs)} reached {text.number(threshold)}"]
        if failed:
            seen.append(f"{len(failed)} ran to the end without reaching it")
        if cut:
            updates = ", ".join(map(str, sorted(cut)))
            seen.append(f"{len(cut)} not trained to the declared end, without reaching it by update {updates}")
        known = "not reached by every seed" if math.isinf(enough) else f"reached by update {text.number(enough)}"
        seen.append(f"{self.beside}: {known}")
        return Checked(what, _alike(len(failed), reached, len(waiting) - len(failed)), "; ".join(seen))


@dataclass(frozen=True)
class Diverges:
    """A model's training diverges: the loss is no longer finite."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """By outcomes; a run that was stopped early might have diverged later."""
        what = f"{self.model} diverges"
        if self.model not in groups:
            return _not_run(what, self.model)
        diverged, trained, cut, seen = _divergence(self.model, groups[self.model].runs)
        return Checked(what, _alike(diverged, trained, cut), seen)


@dataclass(frozen=True)
class Stable:
    """A model's training does not diverge."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """By outcomes; a run that was stopped early might have diverged later."""
        what = f"{self.model} does not diverge"
        if self.model not in groups:
            return _not_run(what, self.model)
        diverged, trained, cut, seen = _divergence(self.model, groups[self.model].runs)
        return Checked(what, _alike(trained, diverged, cut), seen)


@dataclass(frozen=True)
class LongestTimeScale:
    """At the end of training, the mean time scale of a model is at least ten times that of others."""

    model: str
    others: tuple[str, ...]

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """By the mean over units of the first layer, seed by seed, of runs that ended at the same update."""
        what = f"at the end, the time scales of {self.model} are at least ten times those of {', '.join(self.others)}"
        if self.model not in groups:
            return _not_run(what, self.model)
        ours = _ends(groups[self.model])
        verdicts: list[bool | None] = []
        seen = []
        for name in self.others:
            theirs = _ends(groups[name]) if name in groups else {}
            ratios = [
                ours[seed][1] / theirs[seed][1]
                for seed in sorted(ours.keys() & theirs.keys())
                if ours[seed][0] == theirs[seed][0] and theirs[seed][1] > 0
            ]
            found = factors(ratios)
            verdicts.append(_above(found, _ORDERS_OF_MAGNITUDE))
            seen.append(f"{name}: " + (_times(found, "as long with " + self.model) if name in groups else "not run"))
        return Checked(what, all_of(verdicts), "; ".join(seen))


@dataclass(frozen=True)
class StaysPut:
    """The mean time scale of a model changes by less than a factor of two."""

    model: str

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """From the first to the last update of runs that were trained to the end."""
        what = f"the time scales of {self.model} change by less than a factor of two"
        if self.model not in groups:
            return _not_run(what, self.model)
        begun = {run.seed: scales[0][1] for run in groups[self.model].runs if (scales := _scales(run))}
        ratios = [end / begun[seed] for seed, (_, end) in _ends(groups[self.model]).items() if begun[seed] > 0]
        found = factors(ratios)
        return Checked(what, _inside(found, _STILL), f"at the end: {_times(found, 'as long as at the start')}")


@dataclass(frozen=True)
class Comparable:
    """One model reaches the threshold about as fast as another one: within a factor of two.

    ``at`` is the threshold where the item has none.
    """

    model: str
    other: str
    at: float | None = None

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """Seed by seed; seconds only where both were timed on the same clock."""
        unit = "updates" if clock == "update" else "seconds"
        threshold = threshold if self.at is None else self.at
        reached = "" if self.at is None else f" to {text.number(self.at)}"
        what = f"{self.model} and {self.other} need the same number of {unit}{reached}, within a factor of two"
        lacking = [name for name in (self.model, self.other) if name not in groups]
        if threshold is None or lacking:
            return _not_run(what, *lacking)
        one, other = groups[self.model], groups[self.other]
        if clock == "seconds" and len({run.clock for run in (*one.runs, *other.runs)}) > 1:
            return Checked(what, None, f"{self.other}: timed on a different engine or machine")
        found = factor_between(one.arrival_of_each(threshold, clock), other.arrival_of_each(threshold, clock))
        medians = (f"{g.name}: median {text.median_only(g.arrivals(threshold, clock).median)}" for g in (one, other))
        seen = f"{'; '.join(medians)}; {self.other} {_times(found, 'as many')}"
        return Checked(what, _inside(found, _COMPARABLE), seen)


@dataclass(frozen=True)
class TimeRatio:
    """The ratio of the times of an update of two models, measured separately from the runs."""

    model: str
    other: str
    paper: float
    task: str

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """From the rounds of the measurement."""
        what = f"time of an update with {self.model} ÷ with {self.other} is within {100 * NEAR:g} % of {self.paper:.3f}"
        parts = {name: groups[name].of_task(self.task) if name in groups else None for name in (self.model, self.other)}
        if lacking := [name for name, part in parts.items() if part is None]:
            return _not_run(what, *lacking)
        found = ratio_of(*(part.runs[0].update_time for part in parts.values() if part is not None))
        if found is None:
            return Checked(what, None, "not measured separately from the runs")
        return Checked(what, near(found, self.paper), f"{self.model} ÷ {self.other}: {text.middle(found)}")


@dataclass(frozen=True)
class Both:
    """Two claims in one sentence."""

    first: Claim
    second: Claim

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """Both hold."""
        one, two = (claim.check(groups, threshold, clock) for claim in (self.first, self.second))
        return Checked(f"{one.what}; {two.what}", all_of([one.holds, two.holds]), f"{one.seen}; {two.seen}")


def near(ratio: Middle, paper: float) -> bool | None:
    """Whether a ratio of times agrees with the paper's, judged by its interquartile range; None if undecided."""
    low, high = (1 - NEAR) * paper, (1 + NEAR) * paper
    return True if low <= ratio.low and ratio.high <= high else False if ratio.high < low or ratio.low > high else None


def ratio_of(ours: UpdateTime | None, other: UpdateTime | None) -> Middle | None:
    """The ratio of two update times, round by round; None if one is missing or their engines or machines differ."""
    if ours is None or other is None or ours.clock != other.clock or len(ours.rounds) != len(other.rounds):
        return None
    return middle_of([a / b for a, b in zip(ours.rounds, other.rounds, strict=True)])


def _not_run(what: str, *models: str) -> Checked:
    return Checked(what, None, f"{', '.join(models)}: not run" if models else "no threshold")


def _divergence(model: str, runs: Sequence[LabRun]) -> tuple[int, int, int, str]:
    """How many runs diverged, were trained to the declared end and were not; and this in words."""
    diverged = sum(run.outcome == "diverged" for run in runs)
    cut = sum(not run.complete for run in runs)
    seen = f"{model}: {diverged} of {len(runs)} runs diverged" + (
        f", {cut} not trained to the declared end" if cut else ""
    )
    best = [value for run in runs if run.outcome != "diverged" and (value := run.value("best")) is not None]
    if best:
        ends = dict.fromkeys(text.number(end) for end in (min(best), max(best)))
        seen += f"; best {runs[0].measure.name}{' of the others' if diverged else ''} {' to '.join(ends)}"
    return diverged, len(runs) - diverged - cut, cut, seen


def _scales(run: LabRun) -> list[tuple[int, float]]:
    """Updates, with the mean time scale of the first layer."""
    found = []
    for line in run.metrics:
        mean = finite(line.get("time_scales", {}).get("l0", {}).get("mean"))
        if mean is not None:
            found.append((int(line["update"]), mean))
    return found


def _ends(found: Group) -> dict[int, tuple[int, float]]:
    """By seed, the last update and its mean time scale, of the runs that were trained to the end."""
    trained = [run for run in found.runs if run.complete and run.outcome != "diverged"]
    return {run.seed: scales[-1] for run in trained if (scales := _scales(run))}


def _above(found: Factor, bound: float) -> bool | None:
    """Whether the whole interval of the factor is above the bound (True) or below it (False)."""
    if found.n < FEWEST:
        return None
    return True if found.low > bound else False if found.high < bound else None


def _inside(found: Factor, bound: float) -> bool | None:
    """Whether the whole interval of the factor is between 1/bound and the bound (True) or outside (False)."""
    if found.n < FEWEST:
        return None
    if found.low > 1 / bound and found.high < bound:
        return True
    return False if found.high < 1 / bound or found.low > bound else None


def _alike(agreeing: int, against: int, unknown: int) -> bool | None:
    """True if all runs agree, False if enough of them contradict the claim, otherwise None."""
    if against >= FEWEST:
        return False
    return True if agreeing >= FEWEST and not against and not unknown else None


def _times(found: Factor, what: str) -> str:
    """The factor in words: "2.1 … 3.4 times as many (95 %)"."""
    if found.n < FEWEST:
        return f"fewer than {FEWEST} seeds to compare"
    if not found.high or math.isinf(found.low):
        return "one of the two diverges with every seed"
    if not found.low and math.isinf(found.high):
        return "no bound on the factor"
    return f"{text.interval(found.low, found.high)} times {what} ({text.LEVEL})"
