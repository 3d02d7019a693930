"""Who was first, seed by seed, and the sign test."""

from __future__ import annotations

import math

import pytest

from gatedrnn.lab.analysis import Arrival, Paired, paired


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
