"""The rounds of a measurement: their median and interquartile range."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Middle(NamedTuple):
    """The median of some rounds, and the ends of their interquartile range."""

    median: float
    low: float
    high: float


def middle_of(rounds: Sequence[float]) -> Middle:
    """By quartiles; for a single round all three are equal."""
    if len(rounds) == 1:
        return Middle(rounds[0], rounds[0], rounds[0])
    low, median, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return Middle(median, low, high)
