"""First evaluation at or beyond a threshold, by updates and by seconds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gatedrnn.lab.analysis import Arrival, arrival, finite, seconds_to, updates_to


def curve(values: list[float | None], name: str = "mse") -> list[dict[str, Any]]:
    return [{"update": 50 * i, "seconds": 2.5 * i, name: value} for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.3, 0.1, 0.02, 0.01], 100),  # at the threshold counts
        ([0.3, 0.1, 0.0199], 100),
        ([0.01], 0),
        ([0.3, None, 0.01, 0.3], 100),  # null is no value, and what comes after the first does not matter
        ([0.3, 0.1], None),
        ([None], None),
        ([], None),
    ],
)
def test_lower_is_better(values: list[float | None], expected: int | None) -> None:
    metrics = curve(values)
    assert updates_to(metrics, "mse", 0.02, True) == expected
    assert seconds_to(metrics, "mse", 0.02, True) == (None if expected is None else expected / 20)


def test_higher_is_better() -> None:
    metrics = curve([0.1, 0.98, 0.99, 1.0], "accuracy")
    assert updates_to(metrics, "accuracy", 0.99, False) == 100
    assert seconds_to(metrics, "accuracy", 0.99, False) == 5.0
    assert updates_to(metrics, "mse", 0.99, False) is None  # a metric that the run does not have


def test_arrivals() -> None:
    metrics = curve([0.3, 0.1, 0.01, 0.001])
    assert arrival(metrics, "mse", 0.02, True) == Arrival(100.0, 150.0, 50.0)
    assert arrival(metrics, "mse", 0.02, True, "seconds") == Arrival(5.0, 7.5, 2.5)
    assert arrival(metrics, "mse", 0.5, True) == Arrival(0.0, 150.0, 0.0)
    assert arrival(metrics, "mse", 1e-9, True) == Arrival(None, 150.0)
    assert arrival(metrics, "mse", 1e-9, True, diverged=True) == Arrival(None, math.inf)
    assert arrival([], "mse", 0.02, True) == Arrival(None, 0.0)
    reached, censored = Arrival(100.0, 150.0, 50.0), Arrival(None, 150.0)
    assert (reached.not_yet, censored.not_yet) == (50.0, 150.0)
    assert (reached.earliest, reached.latest) == (100.0, 100.0)
    assert (censored.earliest, censored.latest) == (150.0, math.inf)


def test_finite() -> None:
    assert finite(3) == 3.0
    assert [finite(value) for value in (10**400, -(10**400), 1e301)] == [None] * 3
    assert [finite(value) for value in (None, math.nan, math.inf, -math.inf, "3", True)] == [None] * 6
