"""Curves over seeds: values where every seed has one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gatedrnn.lab.analysis import over_seconds, over_updates, time_scale_layers, time_scale_spread


def run(values: list[float | None], every: int = 50, pace: float = 0.1) -> list[dict[str, Any]]:
    return [{"update": every * i, "seconds": pace * every * i, "mse": value} for i, value in enumerate(values)]


def test_mean_and_deviation_at_common_updates() -> None:
    found = over_updates([run([1.0, 2.0, 3.0]), run([3.0, 6.0])], "mse")
    assert (found.n, found.x, found.mean) == (2, [0.0, 50.0], [2.0, 4.0])
    assert found.std == pytest.approx([math.sqrt(2), math.sqrt(8)])


def test_different_rhythms_meet_where_both_were_measured() -> None:
    found = over_updates([run([1.0] * 7, every=50), run([3.0] * 4, every=100)], "mse")
    assert found.x == [0.0, 100.0, 200.0, 300.0]


def test_null_is_left_out() -> None:
    assert over_updates([run([1.0, None, 3.0]), run([1.0, 2.0, 5.0])], "mse").x == [0.0, 100.0]
    assert over_updates([run([None]), run([1.0])], "mse").x == []
    assert over_updates([], "mse").x == []


def test_one_seed_has_no_deviation() -> None:
    assert over_updates([run([1.0, 2.0])], "mse").std == [0.0, 0.0]


def test_large_values_stay_numbers() -> None:
    for make in (over_updates, over_seconds):
        found = make([run([1e299, 0.0]), run([-1e299, 0.0]), run([1e299, 0.0])], "mse")
        assert (found.mean[0], found.std[0]) == (pytest.approx(1e299 / 3), pytest.approx(2e299 / math.sqrt(3)))
        assert (found.mean[-1], found.std[-1]) == (0.0, 0.0)


def test_the_mean_and_the_deviation_of_the_logarithm() -> None:
    found = over_updates([run([0.1, 1.0]), run([0.001, 0.0])], "mse")
    assert found.log_mean == [pytest.approx(0.01), None]  # zero has no logarithm
    assert found.factor == [pytest.approx(math.exp(math.log(100) / math.sqrt(2))), None]
    one = over_seconds([run([0.5, 0.5])], "mse")
    assert (one.log_mean[0], one.factor[0]) == (pytest.approx(0.5), 1.0)


def test_against_something_else_than_updates() -> None:
    lines = [{"update": 450 * i, "epoch": i, "mse": 1.0} for i in range(3)]
    assert over_updates([lines, lines[:2]], "mse", "epoch").x == [0.0, 1.0]


def test_against_time_each_seed_is_interpolated() -> None:
    # mse = 10 − t and 20 − 2t: the mean is 15 − 1.5t, the deviation (10 − t)/√2.
    slow = [{"update": i, "seconds": 2.0 * i, "mse": 10 - 2.0 * i} for i in range(5)]
    fast = [{"update": i, "seconds": 0.5 * i, "mse": 20 - 1.0 * i} for i in range(13)]
    found = over_seconds([slow, fast], "mse")
    x = np.asarray(found.x)
    assert (x[0], x[-1], found.n) == (0.0, 6.0, 2)
    assert found.mean == pytest.approx(15 - 1.5 * x)
    assert found.std == pytest.approx((10 - x) / math.sqrt(2))


def test_against_time_ends_where_a_seed_leaves_the_numbers() -> None:
    assert over_seconds([run([1.0, 1.0, None, 1.0]), run([1.0] * 4)], "mse").x[-1] == pytest.approx(5.0)
    assert over_seconds([run([None, 1.0]), run([1.0, 1.0])], "mse").x == []
    assert over_seconds([run([1.0])], "mse").x == [0.0]
    assert over_seconds([], "mse").x == []


def scales(update: int, **layers: list[float]) -> dict[str, Any]:
    statistics = {name: {"mean": float(np.mean(units)), "std": float(np.std(units))} for name, units in layers.items()}
    return {"update": update, "seconds": 0.0, "time_scales": statistics}


def test_time_scales_of_all_units_of_all_seeds() -> None:
    one, two = [1.0, 2.0, 4.0], [1e7, 3e7, 1e7 + 5]
    found = time_scale_spread([[scales(0, l0=one)], [scales(0, l0=two)]], "l0")
    assert (found.n, found.x) == (2, [0.0])
    assert found.log_mean == found.mean == pytest.approx([np.mean(one + two)])
    assert found.factor == pytest.approx(
        [math.exp(math.sqrt(math.log1p((np.std(one + two) / np.mean(one + two)) ** 2)))]
    )
    assert found.std == pytest.approx([np.std(one + two)])


def test_a_large_time_scale_keeps_its_deviation() -> None:
    found = time_scale_spread([[{"update": 0, "time_scales": {"l0": {"mean": 1e12, "std": 0.5}}}]], "l0")
    assert found.std == [0.5]


def test_time_scales_near_the_largest_number() -> None:
    units = {"mean": 1e238, "std": 3e238}
    found = time_scale_spread([[{"update": 0, "time_scales": {"l0": units}}]] * 2, "l0")
    assert (found.mean, found.std) == ([1e238], [pytest.approx(3e238)])


def test_layers_of_time_scales() -> None:
    assert time_scale_layers([[scales(0, l10=[1.0], l2=[1.0])], [scales(0, l0_reverse=[1.0])]]) == [
        "l0_reverse",
        "l2",
        "l10",
    ]
    assert time_scale_layers([[{"update": 0, "mse": 1.0}]]) == []
    assert time_scale_spread([[{"update": 0, "mse": 1.0}]], "l0").x == []
