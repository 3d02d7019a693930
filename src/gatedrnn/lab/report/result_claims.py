"""The paper's statements about results on test data, as checks that records can pass or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatedrnn.lab.analysis import interval_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.report import text
from gatedrnn.lab.report.claims import FEWEST, Checked, all_of
from gatedrnn.lab.report.groups import Group

_TOO_FEW = f"fewer than {FEWEST} seeds of the same length to compare"


@dataclass(frozen=True)
class Best:
    """On each of some tasks a model has a better result on test data than others; on a part of that data, if named."""

    model: str
    others: tuple[str, ...]
    tasks: tuple[str, ...]
    column: str = ""

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """By the mean difference over seeds and its interval."""
        part = f" ({self.column})" if self.column else ""
        what = f"{self.model} is better than {', '.join(self.others)} on {', '.join(self.tasks)}{part}"
        verdicts: list[bool | None] = []
        seen = []
        for task in self.tasks:
            lacking = []
            for name in self.others:
                gains = list(_gains(groups, self.model, name, task, self.column).values())
                verdicts.append(_positive(gains))
                if len(gains) < FEWEST:
                    lacking.append(name)
                else:
                    seen.append(f"{task}, {self.model} against {name}: better by {_interval(gains)}")
            if lacking:
                seen.append(f"{task}, {self.model} against {', '.join(lacking)}: {_TOO_FEW}")
        return Checked(what, all_of(verdicts), "; ".join(seen))


@dataclass(frozen=True)
class SmallerGain:
    """On each of some tasks a model is better than its baseline on test data, by less than another pair of models."""

    model: str
    baseline: str
    pair: tuple[str, str]
    tasks: tuple[str, ...]

    def check(self, groups: Mapping[str, Group], threshold: float | None, clock: Clock = "update") -> Checked:
        """By the gain and the difference of the two gains, means over seeds with their intervals."""
        other, of_other = self.pair
        what = (
            f"{self.model} is better than {self.baseline} on {', '.join(self.tasks)}, by less than {other} is better "
            f"than {of_other}"
        )
        verdicts: list[bool | None] = []
        seen = []
        for task in self.tasks:
            gains, others = (_gains(groups, *pair, task) for pair in ((self.model, self.baseline), self.pair))
            more = [others[place] - gains[place] for place in gains.keys() & others.keys()]
            for pair, values, how in (
                (f"{self.model} against {self.baseline}", list(gains.values()), "better by"),
                (f"{other} against {of_other}", more, "gain larger by"),
            ):
                verdicts.append(_positive(values))
                seen.append(f"{task}, {pair}: {_TOO_FEW if len(values) < FEWEST else f'{how} {_interval(values)}'}")
        return Checked(what, all_of(verdicts), "; ".join(seen))


def _gains(
    groups: Mapping[str, Group], model: str, baseline: str, task: str, column: str = ""
) -> dict[tuple[object, ...], float]:
    """By how much a model is better than another one on test data, with the same seed and length of training."""
    ours, theirs = (_tested(groups, name, task, column) for name in (model, baseline))
    return {place: ours[place] - theirs[place] for place in sorted(ours.keys() & theirs.keys(), key=str)}


def _interval(values: Sequence[float]) -> str:
    return f"{text.interval(*interval_of(values))} ({text.LEVEL})"


def _positive(values: Sequence[float]) -> bool | None:
    """Whether the interval of the mean is above zero (True) or below it (False)."""
    if len(values) < FEWEST:
        return None
    low, high = interval_of(values)
    return True if low > 0 else False if high < 0 else None


def _tested(groups: Mapping[str, Group], model: str, task: str, column: str) -> dict[tuple[object, ...], float]:
    """The test result of complete runs by seed and length of training, with a sign such that larger is better."""
    part = groups[model].of_task(task) if model in groups else None
    runs = [run for run in part.runs if run.complete] if part is not None else []
    tested = {
        (run.seed, *(run.training.get(unit) for unit in ("updates", "epochs"))): run.tested_in(column or task)
        for run in runs
    }
    sign = -1 if part is not None and part.measure.lower_is_better else 1
    return {place: sign * value for place, value in tested.items() if value is not None}
