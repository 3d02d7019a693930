"""Means and medians over seeds against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gatedrnn.lab.analysis import Arrival, arrivals_of, half_width_of_difference, mean_of, median_of


def arrived(*values: float) -> list[Arrival]:
    return [Arrival(value, 1000.0) for value in values]


def test_students_interval() -> None:
    # t(0.975, 1) = tan(0.475 π): with one degree of freedom Student's is Cauchy's distribution.
    found = mean_of([1.0, 3.0])
    assert (found.n, found.mean) == (2, 2.0)
    assert found.std == pytest.approx(math.sqrt(2))
    assert found.low == pytest.approx(2 - math.tan(0.475 * math.pi))
    assert found.high == pytest.approx(2 + math.tan(0.475 * math.pi))
    # t(p, 2) = (2p − 1)·√(2 / (4p(1−p)))
    found = mean_of([1.0, 2.0, 3.0], level=0.9)
    assert found.high == pytest.approx(2 + 0.9 * math.sqrt(2 / (4 * 0.95 * 0.05)) / math.sqrt(3))


def test_interval_of_a_difference() -> None:
    ours = mean_of([1.0, 2.0, 3.0])

    def t(freedom: int) -> float:  # at 0.975, in closed form
        if freedom == 2:
            return 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))
        assert freedom == 4
        return 2 * math.sqrt(math.cos(math.acos(math.sqrt(0.0975)) / 3) / math.sqrt(0.0975) - 1)

    assert half_width_of_difference(ours, 3) == pytest.approx(t(2) * math.sqrt(2 / 3))
    assert half_width_of_difference(ours, 6) == pytest.approx(t(2) * math.sqrt(1 / 3 + 1 / 6))
    # Welch with equal deviations and sizes has 2(n − 1) degrees of freedom.
    assert half_width_of_difference(ours, 3, 1.0) == pytest.approx(t(4) * math.sqrt(2 / 3))
    assert half_width_of_difference(mean_of([1.0]), 3) is None
    assert half_width_of_difference(mean_of([1.0, 1.0]), 3, 0.0) == 0.0


def test_large_values_stay_numbers() -> None:
    found = mean_of([1e299, -1e299, 1e299])
    assert (found.mean, found.std) == (pytest.approx(1e299 / 3), pytest.approx(2e299 / math.sqrt(3)))
    half = half_width_of_difference(found, 3, 1e299)
    assert half is not None and math.isfinite(half)
    assert half == pytest.approx(1e299 * half_width_of_difference(mean_of([1.0, -1.0, 1.0]), 3, 1.0))  # type: ignore[operator]


def test_one_value_has_no_interval() -> None:
    found = mean_of([4.0])
    assert (found.mean, found.std, found.low, found.high) == (4.0, None, None, None)


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan]])
def test_a_mean_of_what_is_not_finite_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="mean_of"):
        mean_of(values)


@pytest.mark.parametrize(
    ("n", "j", "coverage"),
    [
        (1, 1, 0.0),
        (2, 1, 0.5),
        (3, 1, 0.75),
        (5, 1, 1 - 2 / 32),
        (6, 1, 1 - 2 / 64),
        (8, 1, 1 - 2 / 256),  # j = 2 would cover 0.930
        (9, 2, 1 - 2 * 10 / 512),
        (12, 3, 1 - 2 * (1 + 12 + 66) / 4096),
    ],
)
def test_interval_of_the_median(n: int, j: int, coverage: float) -> None:
    found = median_of(arrived(*range(n, 0, -1)))
    assert found.coverage == pytest.approx(coverage)
    assert (found.low, found.high) == (j, n + 1 - j)
    assert found.at_least == found.at_most == (n + 1) / 2


def test_the_interval_covers_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    draws = generator.exponential(size=(4000, 5))
    held = [(lambda m: m.low <= math.log(2) <= m.high)(median_of(arrived(*row))) for row in draws]
    assert np.mean(held) == pytest.approx(0.9375, abs=3 * math.sqrt(0.9375 * 0.0625 / 4000))


def test_some_seeds_have_not_arrived() -> None:
    found = arrivals_of([*arrived(100, 300, 200), Arrival(None, 1000.0), Arrival(None, 1000.0)])
    assert (found.n, found.reached, found.mean) == (5, 3, None)
    assert (found.median.at_least, found.median.at_most) == (300, 300)  # still known
    assert (found.median.low, found.median.high) == (100, math.inf)


def test_a_median_may_be_a_bound_only() -> None:
    found = median_of([*arrived(100), Arrival(None, 400.0), Arrival(None, 1000.0)])
    assert (found.at_least, found.at_most) == (400, math.inf)
    # A seed given up early may still have been the second: the median is between 150 and 500.
    found = median_of([*arrived(100, 500), Arrival(None, 150.0)])
    assert (found.at_least, found.at_most) == (150, 500)
    # Of an even number, the mean of the two in the middle.
    found = median_of([*arrived(100, 200), Arrival(None, 600.0), Arrival(None, 600.0)])
    assert (found.at_least, found.at_most) == (400, math.inf)


def test_a_diverged_run_never_arrives() -> None:
    found = median_of([*arrived(100), Arrival(None, math.inf), Arrival(None, math.inf)])
    assert (found.at_least, found.at_most) == (math.inf, math.inf)


def test_all_arrived() -> None:
    found = arrivals_of(arrived(100, 200, 300))
    assert found.reached == found.n == 3
    assert found.mean == mean_of([100, 200, 300])


def test_nobody_to_ask() -> None:
    with pytest.raises(ValueError, match="median_of"):
        median_of([])
    with pytest.raises(ValueError, match="at least one"):
        arrivals_of([])
