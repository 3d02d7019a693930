"""Who was first, seed by seed, and the sign test."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gatedrnn.lab.analysis import Arrival, Factor, Paired, factor_between, factors, paired


def at(value: float) -> Arrival:
    return Arrival(value, 1000.0)


def test_five_of_five() -> None:
    ours = {seed: at(100 + seed) for seed in range(5)}
    theirs = {seed: at(200 + seed) for seed in range(5)}
    assert paired(ours, theirs) == Paired(5, 0, 0, 0, pytest.approx(2 / 32))
    assert paired(theirs, ours) == Paired(0, 5, 0, 0, pytest.approx(2 / 32))


def test_four_of_five() -> None:
    ours = {seed: at(100) for seed in range(5)}
    theirs = {**{seed: at(200) for seed in range(4)}, 4: at(50)}
    found = paired(ours, theirs)
    assert (found.first, found.second, found.n) == (4, 1, 5)
    assert found.p == pytest.approx(2 * (1 + 5) / 32)


def test_ties_are_left_out_of_the_test() -> None:
    assert paired({0: at(100), 1: at(100)}, {0: at(100), 1: at(150)}) == Paired(1, 0, 1, 0, 1.0)


def test_only_shared_seeds_are_paired() -> None:
    assert paired({0: at(100), 1: at(1)}, {0: at(150), 2: at(1)}) == Paired(1, 0, 0, 0, 1.0)
    assert paired({0: at(100)}, {1: at(150)}) == Paired(0, 0, 0, 0, None)


def test_a_run_watched_in_vain() -> None:
    stopped = Arrival(None, 300.0)
    assert paired({0: at(200)}, {0: stopped}).first == 1
    assert paired({0: at(300)}, {0: stopped}).first == 1  # it was looked at there, and had not arrived
    assert paired({0: at(301)}, {0: stopped}).open == 1  # it may have been first
    assert paired({0: stopped}, {0: at(200)}).second == 1
    assert paired({0: stopped}, {0: stopped}) == Paired(0, 0, 0, 1, None)
    assert paired({0: at(9999)}, {0: Arrival(None, math.inf)}).first == 1  # it diverged


T2 = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))  # t(0.975, 2) in closed form


def seeds(*arrivals: Arrival) -> dict[int, Arrival]:
    return dict(enumerate(arrivals))


def test_a_factor_is_an_interval_of_the_mean_logarithm() -> None:
    ours = seeds(Arrival(100, 100, 100), Arrival(200, 200, 200), Arrival(400, 400, 400))
    theirs = seeds(Arrival(200, 200, 200), Arrival(800, 800, 800), Arrival(3200, 3200, 3200))  # 2, 4, 8 times
    half = T2 * math.log(2) / math.sqrt(3)
    found = factor_between(ours, theirs)
    assert (found.n, found.low, found.high) == (
        3,
        pytest.approx(4 * math.exp(-half)),
        pytest.approx(4 * math.exp(half)),
    )
    back = factor_between(theirs, ours)
    assert (back.low, back.high) == (pytest.approx(1 / found.high), pytest.approx(1 / found.low))
    assert factors([2.0, 4.0, 8.0]) == Factor(3, pytest.approx(found.low), pytest.approx(found.high))


def test_an_arrival_lies_between_two_evaluations() -> None:
    """Both models with the same numbers for every seed: only what no evaluation saw remains."""
    ours, theirs = seeds(*[Arrival(100, 100, 50)] * 3), seeds(*[Arrival(400, 400, 300)] * 3)
    assert factor_between(ours, theirs) == Factor(3, pytest.approx(300 / 100), pytest.approx(400 / 50))
    near = seeds(*[Arrival(150, 150, 100)] * 3)
    assert factor_between(ours, near).low == pytest.approx(1.0)  # it may have come at 100.001 against 99.999
    assert factor_between(seeds(*[Arrival(50, 50)] * 3), theirs).high == math.inf  # it may have been there at once


def test_a_run_that_was_cut_is_a_bound() -> None:
    ours = seeds(*(Arrival(at, at, at) for at in (100.0, 200.0, 400.0)))
    spread = math.sqrt(2) * T2 * math.log(2) / math.sqrt(3)
    # Cut at three times ours: the bounds do not scatter at all, but arrivals would, as ours do.
    cut = seeds(*(Arrival(None, 3 * at) for at in (100.0, 200.0, 400.0)))
    assert factor_between(ours, cut) == Factor(3, pytest.approx(3 * math.exp(-spread)), math.inf)
    assert factor_between(cut, ours) == Factor(3, 0.0, pytest.approx(math.exp(spread) / 3))
    # Cut before ours arrived: nothing is excluded.
    early = seeds(*(Arrival(None, at / 3) for at in (100.0, 200.0, 400.0)))
    assert factor_between(ours, early).low < 1 and factor_between(ours, early).high == math.inf
    assert factor_between(cut, cut) == Factor(3, 0.0, math.inf)


def test_a_diverged_run_counts_as_watched_longest() -> None:
    ours = seeds(*[Arrival(100, 120, 100)] * 3)
    other = seeds(Arrival(None, math.inf), Arrival(None, math.inf), Arrival(None, 800))
    assert factor_between(ours, other) == Factor(3, pytest.approx(8), math.inf)
    assert factor_between(other, ours) == Factor(3, 0.0, pytest.approx(1 / 8))
    nobody = seeds(*[Arrival(None, math.inf)] * 3)
    assert factor_between(ours, nobody) == Factor(3, math.inf, math.inf)
    assert factor_between(nobody, ours) == Factor(3, 0.0, 0.0)
    assert factor_between(nobody, nobody) == Factor(3, 0.0, math.inf)


def test_too_little_to_say() -> None:
    one = {0: Arrival(100, 100, 50)}
    assert factor_between(one, one) == Factor(1, 0.0, math.inf)
    assert factor_between(one, {}) == Factor(0, 0.0, math.inf)
    assert factor_between(seeds(Arrival(0, 0), Arrival(0, 0)), seeds(at(5), at(5))).low == 0.0
    assert factors([1.0, -1.0]) == factors([1.0, 0.0]) == Factor(2, 0.0, math.inf)
    assert factors([1e300, 1e-300]).high == math.inf


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Lognormal arrivals with a factor of 1: in at most 5 % of the trials it is excluded, cut runs or not."""
    generator = np.random.default_rng(0)
    for cut in (math.inf, 1.5):
        excluded = 0
        for _ in range(4000):
            draws = np.exp(0.5 * generator.standard_normal((2, 3)))
            sides = [
                seeds(*(Arrival(t, t, t) if t <= cut else Arrival(None, cut) for t in row)) for row in draws.tolist()
            ]
            found = factor_between(sides[0], sides[1])
            excluded += not found.low <= 1 <= found.high
        assert excluded / 4000 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
        assert excluded > 0
