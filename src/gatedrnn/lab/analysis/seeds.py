"""Statistics over seeds: means with Student's interval, medians of times with a distribution-free interval.

A mean of the seeds that reached a threshold would leave out the slow ones. So there is a mean only where every seed
reached it. Otherwise the *median* is given. Seeds observed to w without reaching it count as "somewhere beyond w":
every order statistic then lies between the one computed with w and the one computed with infinity, and what is printed
is this range: a number if both ends are equal, and a lower bound ("> w") if the upper end is infinite.

The interval around a median goes from the j-th smallest to the j-th largest value. It holds the median of all possible
seeds with probability 1 − 2·P(Bin(n, ½) < j), whatever their distribution. j is the largest for which that reaches the
level asked for; fewer than six seeds cannot reach 95 %, and then the whole range is given with the coverage it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from gatedrnn.lab.analysis.thresholds import Arrival

LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    """Mean and standard deviation (n − 1) of n values, with Student's interval; one value has no deviation."""

    n: int
    mean: float
    std: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Median:
    """A median of n values known to lie in [at_least, at_most], and an interval that covers it with ``coverage``.

    ``at_most`` and ``high`` are inf if too few seeds have reached the threshold to bound them.
    """

    n: int
    at_least: float
    at_most: float
    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Arrivals:
    """When the seeds reached a threshold: ``mean`` only if all reached it, ``median`` always."""

    n: int
    reached: int
    mean: Mean | None
    median: Median


def mean_of(values: Sequence[float], level: float = LEVEL) -> Mean:
    """The mean of finite values with Student's interval: mean ± t(n−1)·std/√n."""
    if not values:
        raise ValueError("mean_of needs at least one value")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("mean_of takes finite values; a run that did not reach the threshold has no value to average")
    n = len(values)
    mean = math.fsum(value / n for value in values)
    if n == 1:
        return Mean(1, mean, None, None, None)
    std = math.hypot(*(value - mean for value in values)) / math.sqrt(n - 1)  # hypot's squares do not overflow
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * std / math.sqrt(n)
    return Mean(n, mean, std, mean - half, mean + half)


def interval_of(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Student's interval for the mean; all numbers for fewer than two values."""
    found = mean_of(values, level) if len(values) > 1 else None
    if found is None or found.low is None or found.high is None:
        return -math.inf, math.inf
    return found.low, found.high


def half_width_of_difference(ours: Mean, others: int, std: float | None = None, level: float = LEVEL) -> float | None:
    """How far another mean of so many seeds may be from ours by chance.

    With its standard deviation, Welch's interval; without, ours is taken for both: t(n−1)·std·√(1/n + 1/others). None
    for a single seed of ours, which has no deviation.
    """
    if ours.std is None:
        return None
    mine, theirs = ours.std / math.sqrt(ours.n), (ours.std if std is None else std) / math.sqrt(others)
    both = math.hypot(mine, theirs)
    freedom: float = ours.n - 1
    if std is not None and others > 1 and both > 0:
        freedom = 1 / ((mine / both) ** 4 / (ours.n - 1) + (theirs / both) ** 4 / (others - 1))
    return float(stats.t.ppf((1 + level) / 2, freedom)) * both


def median_of(arrivals: Sequence[Arrival], level: float = LEVEL) -> Median:
    """The median of times, some of which may be bounds; see the module's docstring."""
    if not arrivals:
        raise ValueError("median_of needs at least one arrival")
    n = len(arrivals)
    lower = sorted(arrival.earliest for arrival in arrivals)
    upper = sorted(arrival.latest for arrival in arrivals)
    j = _rank(n, level)
    return Median(n, _middle(lower), _middle(upper), lower[j - 1], upper[n - j], _coverage(n, j))


def arrivals_of(arrivals: Sequence[Arrival], level: float = LEVEL) -> Arrivals:
    """When the seeds of one model reached a threshold."""
    reached = [arrival.at for arrival in arrivals if arrival.at is not None]
    complete = len(reached) == len(arrivals)
    return Arrivals(
        n=len(arrivals),
        reached=len(reached),
        mean=mean_of(reached, level) if complete else None,
        median=median_of(arrivals, level),
    )


def _coverage(n: int, j: int) -> float:
    return 1 - 2 * float(stats.binom.cdf(j - 1, n, 0.5))


def _rank(n: int, level: float) -> int:
    """The largest j whose interval covers at least the level; 1, the whole range, if none does."""
    j = 1
    while 2 * (j + 1) <= n and _coverage(n, j + 1) >= level:
        j += 1
    return j


def _middle(ordered: Sequence[float]) -> float:
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
