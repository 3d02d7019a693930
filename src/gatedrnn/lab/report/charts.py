"""The curves of groups of runs as charts: a metric against updates and time, and time scales against updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gatedrnn.lab.analysis import Curve, finite, over_seconds, over_updates, time_scale_layers, time_scale_spread
from gatedrnn.lab.records import UPDATE_TIMES_FILE
from gatedrnn.lab.report.document import Chart, Series, Track
from gatedrnn.lab.report.groups import Group, clocks_of
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import LabRun

TIMED_APART = f"Time: number of updates × time of one update, measured on an idle machine ({UPDATE_TIMES_FILE})."
#: A curve with more points than this is thinned for the page and the figures; the tables use every evaluation.
MOST_POINTS = 1000


def learning_curves(
    stem: str,
    title: str,
    groups: Sequence[Group],
    measure: Measure,
    looks: Looks,
    threshold: float | None = None,
    against: str = "updates",
) -> Chart:
    """The metric at each evaluation: mean line, band of one standard deviation over seeds, thin lines for single seeds.

    Against epochs where every line of every run has them, else against updates.
    """
    clocks = clocks_of(groups)
    chosen = looks.of(groups)
    step = step_of(groups)
    # The value of the untrained model would take most of the axis.
    left_out = measure.log and step == "epoch" and any(_drawn(run, True) for found in groups for run in found.runs)
    series = []
    for found in groups:
        parts = {i: found.on(clock) for i, clock in enumerate(clocks)}
        series.append(
            Series(
                name=found.name,
                look=chosen[found.name],
                updates=_thinned(over_updates([_drawn(run, left_out) for run in found.runs], measure.name, step)),
                seconds={
                    i: over_seconds([_drawn(run, left_out) for run in part.runs], measure.name)
                    for i, part in parts.items()
                    if part is not None
                },
                runs=[_metric_track(run, clocks.index(run.clock), measure, step, left_out) for run in found.runs],
            )
        )
    note = [
        "Line: mean over seeds, up to the last evaluation that all of them have. Band: ± one standard deviation. On a "
        "logarithmic axis, both are computed on the logarithm. Thin lines: single seeds. Against time, the mean is of "
        "linearly interpolated seeds.",
        *(["The evaluation before training is not shown."] if left_out else []),
        *_marks(groups),
    ]
    if any(run.update_time is not None for found in groups for run in found.runs):
        note.append(TIMED_APART)
    if any("validation" in run.record for found in groups for run in found.runs):
        note.insert(0, "Measured on validation data.")
    return Chart(
        stem=stem,
        title=title,
        note=" ".join(note),
        y_label=measure.label,
        log_y=measure.log,
        series=series,
        clocks=clocks,
        threshold=threshold,
        against=against,
        steps=f"{step}s",
    )


def step_of(groups: Sequence[Group]) -> str:
    """What training is counted in: epochs where every line of every run has them, else updates."""
    lines = [line for found in groups for run in found.runs for line in run.metrics]
    return "epoch" if lines and all("epoch" in line for line in lines) else "update"


def time_scale_charts(stem: str, title: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    """One chart for each layer: mean and standard deviation of the units' time scales; none without records of it."""
    layers = time_scale_layers([run.metrics for found in groups for run in found.runs])
    chosen = looks.of(groups)
    charts = []
    for place, layer in enumerate(layers, start=1):
        series = []
        drawn = []
        for found in groups:
            curve = time_scale_spread([run.metrics for run in found.runs], layer)
            if not curve.x:
                continue
            drawn.append(found)
            runs = [_track(run, 0, run.metrics, [_mean_scale(e, layer) for e in run.metrics]) for run in found.runs]
            series.append(Series(found.name, chosen[found.name], _thinned(curve), {}, runs))
        note = [
            "Line: mean of −1/log φ(b) over the units of all seeds, computed from the forget bias alone. Band: ± one "
            "standard deviation over the units; on a logarithmic axis, the standard deviation of the logarithm of a "
            "lognormal distribution with this mean and standard deviation. Thin lines: mean of each seed.",
            *_marks(drawn),
        ]
        charts.append(
            Chart(
                stem=stem if len(layers) == 1 else f"{stem}_{place}",
                title=title if len(layers) == 1 else f"{title}, layer {layer}",
                note=" ".join(note),
                y_label="time scale (steps)",
                log_y=True,
                series=series,
                band_in_view=True,
            )
        )
    return charts


def _marks(groups: Sequence[Group]) -> list[str]:
    """Further notes on a chart: runs that diverged, and evaluations that are not drawn."""
    runs = [run for found in groups for run in found.runs]
    said = []
    if any(run.outcome == "diverged" for run in runs):
        said.append("×: last value of a run that diverged.")
    most = max((len(run.metrics) for run in runs), default=0)
    if _stride(most) > 1:
        said.append(
            f"Thinned: curves with more than {MOST_POINTS} evaluations show one in {_stride(most)}"
            + (" or fewer" if len({_stride(len(run.metrics)) for run in runs}) > 1 else "")
            + "; the tables use all."
        )
    return said


def _mean_scale(evaluation: Mapping[str, Any], layer: str) -> float | None:
    return finite(evaluation.get("time_scales", {}).get(layer, {}).get("mean"))


def _drawn(run: LabRun, left_out: bool) -> Sequence[Mapping[str, Any]]:
    """The evaluations of a run, without that of the untrained model where it is left out."""
    return [line for line in run.metrics if line["update"] > 0] if left_out else run.metrics


def _metric_track(run: LabRun, clock: int, measure: Measure, step: str, left_out: bool) -> Track:
    lines = _drawn(run, left_out)
    return _track(run, clock, lines, [finite(line.get(measure.name)) for line in lines], step)


def _track(
    run: LabRun, clock: int, lines: Sequence[Mapping[str, Any]], values: Sequence[float | None], step: str = "update"
) -> Track:
    shown = _shown(len(lines))
    return Track(
        run.seed,
        clock,
        [float(lines[i][step]) for i in shown],
        [float(lines[i]["seconds"]) for i in shown],
        [values[i] for i in shown],
        diverged=run.outcome == "diverged",
    )


def _thinned(curve: Curve) -> Curve:
    shown = _shown(len(curve.x))
    columns = {
        column.name: [getattr(curve, column.name)[i] for i in shown]
        for column in dataclasses.fields(Curve)
        if column.name != "n"
    }
    return Curve(n=curve.n, **columns)


def _shown(points: int) -> list[int]:
    """The indices of the points that are drawn, always including the last one, the result of the run."""
    shown = list(range(0, points, _stride(points)))
    return shown if not shown or shown[-1] == points - 1 else [*shown, points - 1]


def _stride(points: int) -> int:
    return -(-points // MOST_POINTS) or 1
