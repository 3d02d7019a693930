"""What the rounds of a measurement say: the median, and the middle half of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Middle(NamedTuple):
    """The median of some rounds, and where the middle half of them begins and ends."""

    median: float
    low: float
    high: float


def middle_of(rounds: Sequence[float]) -> Middle:
    """By quartiles; of one round all three are the same."""
    if len(rounds) == 1:
        return Middle(rounds[0], rounds[0], rounds[0])
    low, median, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return Middle(median, low, high)
