"""What the figures draw: bands that a logarithmic axis can show, and a cross where a run diverged."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from gatedrnn.lab.report import figures
from gatedrnn.lab.report.charts import learning_curves, time_scale_charts
from gatedrnn.lab.report.document import Chart
from gatedrnn.lab.report.groups import group
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import load
from gatedrnn.theory.canvas import new_figure
from tests.lab.report.records import write_run

MSE = Measure("mse", lower_is_better=True)


def drawn(chart: Chart) -> Axes:
    _, (panel,) = new_figure(1, 1, (4.0, 3.0))
    for series in chart.series:
        figures._draw_series(panel, chart, series, None)
    return panel


def curves(folder: Path, measure: Measure = MSE) -> Chart:
    return learning_curves("x", "x", [group("fast", "fast", load(folder)[0])], measure, Looks(["fast"]))


def band(panel: Axes, x: float) -> tuple[float, float]:
    """The ends of the band at x."""
    (found,) = panel.collections
    heights = [y for at, y in found.get_paths()[0].vertices if at == x]
    return min(heights), max(heights)


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """0.1, 0.01 and 0.001 at every evaluation: the mean less the deviation is below zero."""
    for seed in range(3):
        write_run(tmp_path / f"{seed}", "fast", seed, evaluations=3, curve=lambda i, seed=seed: 10.0 ** (-1 - seed))
    return tmp_path


def test_a_band_on_a_logarithmic_axis_is_made_in_the_logarithm(seeds: Path) -> None:
    panel = drawn(curves(seeds))
    low, high = band(panel, 50.0)
    assert (low, high) == (pytest.approx(0.001), pytest.approx(0.1))  # 10^(−2 ± 1)
    assert panel.lines[-1].get_ydata()[1] == pytest.approx(0.01)


def test_epochs_and_updates_are_whole_numbers(tmp_path: Path) -> None:
    write_run(tmp_path / "0", "fast", 0, evaluations=4)
    chart = curves(tmp_path)
    panel = drawn(chart)
    panel.set_xlim(-0.15, 3.15)  # as three epochs have it
    assert any(tick % 1 for tick in panel.get_xticks())
    figures._dress(panel, chart, None)
    assert all(tick % 1 == 0 for tick in panel.get_xticks())


@pytest.mark.parametrize(
    ("log", "evaluations", "epochs"), [(True, 4, [1, 2, 3]), (True, 1, [0]), (False, 3, [0, 1, 2])]
)
def test_a_logarithmic_axis_of_epochs_begins_with_the_first(
    log: bool, evaluations: int, epochs: list[int], tmp_path: Path
) -> None:
    """The perplexity before training is that of guessing, far above all others."""
    write_run(tmp_path / "0", "fast", 0, evaluations=evaluations)
    path = tmp_path / "0" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "epoch": i}) + "\n" for i, line in enumerate(lines)))
    chart = curves(tmp_path, Measure("mse", lower_is_better=True, log=log))
    (series,) = chart.series
    (run,) = series.runs
    assert list(series.updates.x) == list(run.updates) == epochs
    assert run.value == [lines[epoch]["mse"] for epoch in epochs]
    assert ("before training is not shown" in chart.note) == (0 not in epochs)


def test_a_band_on_a_linear_axis_is_the_deviation(seeds: Path) -> None:
    panel = drawn(curves(seeds, Measure("mse", lower_is_better=True, log=False)))
    mean = 0.111 / 3
    std = math.sqrt(sum((10.0 ** (-1 - seed) - mean) ** 2 for seed in range(3)) / 2)
    low, high = band(panel, 50.0)
    assert (low, high) == (pytest.approx(mean - std), pytest.approx(mean + std))
    assert low < 0
    assert panel.lines[-1].get_ydata()[1] == pytest.approx(mean)


def test_the_band_of_time_scales_is_lognormal(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "sigmoid", 0, evaluations=3)
    (chart,) = time_scale_charts("x", "x", [group("sigmoid", "sigmoid", load(tmp_path)[0])], Looks(["sigmoid"]))
    mean = 3 * 1.02  # with a deviation of a quarter of it
    factor = math.exp(math.sqrt(math.log(1 + 1 / 16)))
    low, high = band(drawn(chart), 50.0)
    assert (low, high) == (pytest.approx(mean / factor), pytest.approx(mean * factor))


def test_a_value_without_a_logarithm_leaves_a_gap(tmp_path: Path) -> None:
    for seed in range(2):
        write_run(tmp_path / f"{seed}", "fast", seed, evaluations=4, curve=lambda i: 0.0 if i == 2 else 0.1)
    chart = curves(tmp_path)
    assert chart.series[0].updates.log_mean == [pytest.approx(0.1), pytest.approx(0.1), None, pytest.approx(0.1)]
    assert math.isnan(drawn(chart).lines[-1].get_ydata()[2])


@pytest.mark.parametrize("exponents", [(0, 299), (-323, 299), (-323, 0), (200, 299), (-320, -310), (0, 60)])
def test_values_over_hundreds_of_powers_of_ten_can_be_drawn(exponents: tuple[int, int], tmp_path: Path) -> None:
    """The fast gate has time scales of 1e200 at pre-activations below 7."""
    ends = [float(f"1e{power}") for power in exponents]
    write_run(tmp_path / "a", "fast", 0, evaluations=4, curve=lambda i: ends[i % 2])
    for kind in figures.images(curves(tmp_path)).values():
        assert len(kind) > 5000


def test_a_cross_stands_where_a_run_diverged(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, evaluations=4, outcome="diverged", curve=lambda i: 0.1 + i)
    write_run(tmp_path / "b", "fast", 1, evaluations=6)
    chart = curves(tmp_path)
    crosses = [line for line in drawn(chart).lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(150.0, 3.1)]
    assert figures._label(chart.series[0]) == "fast (2 seeds, 1 diverged)"
    assert b"1 diverged" in figures.images(chart)["svg"]


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_clock_without_a_positive_value(value: float | None, tmp_path: Path) -> None:
    """A model that diverged at once, timed on a clock of its own, has nothing that a logarithmic axis can show."""
    write_run(tmp_path / "a", "fast", 0, evaluations=3)
    write_run(tmp_path / "b", "NRU", 0, evaluations=2, curve=lambda i: 0.0, engine="reference: a loop")
    runs = load(tmp_path)[0]
    for line in runs[1].metrics:
        line["mse"] = value
    groups = [group(name, name, [run]) for name, run in zip(("fast", "NRU"), runs, strict=True)]
    chart = learning_curves("x", "x", groups, MSE, Looks(["fast", "NRU"]), against="seconds")
    assert len(chart.clocks) == 2 and figures._clocks(chart) == ([0] if value is None else [0, 1])
    assert set(figures.images(chart)) == {"png", "svg"} and figures.small_image(chart)
