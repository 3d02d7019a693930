"""Which of two models came first, seed by seed, and how surprising that would be if neither were faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import stats

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

    A run that was watched in vain loses to one that arrived no later than the watch ended; it is left open against one
    that arrived afterwards, and so are two that both did not arrive.
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
