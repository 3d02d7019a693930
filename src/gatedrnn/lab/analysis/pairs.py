"""Which of two models came first, seed by seed, how surprising that would be by chance, and by which factor it was.

The factor is a geometric mean over the seeds that both models have, with Student's interval of the mean logarithm. A
run is known to arrive between two evaluations only, and one that was not seen to arrive only to be later than its watch
ended. So the lower end of the interval takes the latest time for the one model and the earliest for the other, and the
upper end the reverse: what lies outside is excluded whatever happened unseen.
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
    """Seeds at which one model was first, the other was, both arrived at the same evaluation, or nobody can tell.

    ``p`` is the two-sided sign test over the decided seeds: the probability of a count at least as uneven if each were
    a fair coin; None without a decided seed. Five of five give 0.0625: few seeds cannot prove much, and p says so.
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
    """Compare the arrivals of two models at the seeds they share.

    A run that did not arrive while it was observed loses to one that arrived no later than its observation ended; it is
    left open against one that arrived afterwards, and so are two that both did not arrive.
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

    ``low`` is 0 and ``high`` infinite where nothing is known, as with fewer than two seeds.
    """

    n: int
    low: float
    high: float


def factor_between(first: Mapping[int, Arrival], second: Mapping[int, Arrival], level: float = LEVEL) -> Factor:
    """The factor from the arrivals of the first model to those of the second, at the seeds they share."""
    shared = sorted(first.keys() & second.keys())
    ours, theirs = ([side[seed] for seed in shared] for side in (first, second))
    return Factor(len(shared), _exp(_least(ours, theirs, level)), _exp(-_least(theirs, ours, level)))


def factors(values: Sequence[float], level: float = LEVEL) -> Factor:
    """The interval for the geometric mean of ratios that are known; a ratio that is not positive leaves it open."""
    if len(values) < 2 or min(values) <= 0:
        return Factor(len(values), 0.0, math.inf)
    low, high = interval_of([math.log(value) for value in values], level)
    return Factor(len(values), _exp(low), _exp(high))


def _least(early: Sequence[Arrival], late: Sequence[Arrival], level: float) -> float:
    """The lower end of the interval of the mean of log(late / early); −inf where it is open.

    Where all late ones diverged, it is infinite: they never arrive. Where some did, they count as if they had been
    watched as long as the longest of both models, which is less than never. Bounds scatter less than arrivals: where
    some of the late ones are bounds, the scatter is taken to be at least that of two models that both scatter like the
    early one.
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
