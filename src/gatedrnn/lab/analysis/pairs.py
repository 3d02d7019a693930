"""Which of two models reached a threshold first, seed by seed, with a sign test, and the factor between them.

The factor is a geometric mean over the seeds that both models have, with Student's interval of the mean logarithm. A
run reaches the threshold between two evaluations, and one that did not reach it would do so after its last evaluation.
So the lower end of the interval takes the latest possible time for one model and the earliest for the other, and the
upper end the reverse: the interval holds whatever happened between evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import stats

from gatedrnn.lab.analysis.seeds import LEVEL, interval_of
from gatedrnn.lab.analysis.thresholds import Arrival


@dataclass(frozen=True)
class Paired:
    """Seeds for which one model was first, the other was, both reached it at the same evaluation, or it is undecided.

    ``p`` is the two-sided sign test over the decided seeds: the probability of a count at least as uneven if both
    models were equally likely to be first; None without a decided seed. Five of five give 0.0625.
    """

    first: int
    second: int
    ties: int
    open: int
    p: float | None

    @property
    def n(self) -> int:
        """Seeds that both models have."""
        return self.first + self.second + self.ties + self.open


def paired(ours: Mapping[int, Arrival], theirs: Mapping[int, Arrival]) -> Paired:
    """Compare two models at the seeds they share.

    A run that did not reach the threshold loses to one that reached it no later than the end of the first run; against
    one that reached it later it is undecided, and so are two runs that both did not reach it.
    """
    first = second = ties = 0
    shared = sorted(ours.keys() & theirs.keys())
    for seed in shared:
        a, b = ours[seed], theirs[seed]
        if a.at is not None and a.at == b.at:
            ties += 1
        elif _before(a, b):
            first += 1
        elif _before(b, a):
            second += 1
    decided = first + second
    p = float(stats.binomtest(first, decided, 0.5).pvalue) if decided else None
    return Paired(first, second, ties, len(shared) - decided - ties, p)


def _before(a: Arrival, b: Arrival) -> bool:
    if a.at is None:
        return False
    return a.at < b.at if b.at is not None else a.at <= b.watched


@dataclass(frozen=True)
class Factor:
    """How many times as long the second model took as the first: an interval for the geometric mean over n seeds.

    ``low`` is 0 and ``high`` infinite if nothing is known, as with fewer than two seeds.
    """

    n: int
    low: float
    high: float


def factor_between(first: Mapping[int, Arrival], second: Mapping[int, Arrival], level: float = LEVEL) -> Factor:
    """The factor from the times of the first model to those of the second, at the seeds they share."""
    shared = sorted(first.keys() & second.keys())
    ours, theirs = ([side[seed] for seed in shared] for side in (first, second))
    return Factor(len(shared), _exp(_least(ours, theirs, level)), _exp(-_least(theirs, ours, level)))


def factors(values: Sequence[float], level: float = LEVEL) -> Factor:
    """The interval for the geometric mean of known ratios; unbounded if a ratio is not positive."""
    if len(values) < 2 or min(values) <= 0:
        return Factor(len(values), 0.0, math.inf)
    low, high = interval_of([math.log(value) for value in values], level)
    return Factor(len(values), _exp(low), _exp(high))


def _least(early: Sequence[Arrival], late: Sequence[Arrival], level: float) -> float:
    """The lower end of the interval of the mean of log(late / early); −inf if it is unbounded.

    If all late runs diverged, it is infinite: they never reach the threshold. If some did, they count as if they had
    been observed as long as the longest run of both models, a lower bound. Bounds vary less than times: if some of the
    late runs are bounds, the variation is taken to be at least that of two models that both vary like the early one.
    """
    arrived = [arrival.at for arrival in early if arrival.at]
    if len(arrived) < max(2, len(early)):
        return -math.inf
    if all(math.isinf(arrival.watched) for arrival in late):
        return math.inf
    longest = max(arrival.watched for arrival in (*early, *late) if math.isfinite(arrival.watched))
    bounds = [min(arrival.not_yet, longest) for arrival in late]
    if min(bounds) <= 0:
        return -math.inf
    ours, theirs = ([math.log(time) for time in times] for times in (arrived, bounds))
    low, high = interval_of([b - a for a, b in zip(ours, theirs, strict=True)], level)
    if all(arrival.at is not None for arrival in late):
        return low
    least, most = interval_of(ours, level)
    return (low + high) / 2 - max(high - low, math.sqrt(2) * (most - least)) / 2


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
