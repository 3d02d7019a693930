"""The curves of groups of runs as charts: a metric against updates and time, and time scales against updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatedrnn.lab.analysis import Curve, finite, over_seconds, over_updates, time_scale_layers, time_scale_spread
from gatedrnn.lab.report.document import Chart, Series, Track
from gatedrnn.lab.report.groups import Group, clocks_of
from gatedrnn.lab.report.looks import Looks

#: A curve with more points than this is thinned for the page and the figures; the tables see every evaluation.
MOST_POINTS = 1000
_NAMES = {"mse": "mean squared error", "accuracy": "accuracy", "loss": "loss", "train_loss": "training loss"}


def learning_curves(
    stem: str,
    title: str,
    groups: Sequence[Group],
    metric: str,
    looks: Looks,
    threshold: float | None = None,
    against: str = "updates",
) -> Chart:
    """The metric on the evaluation set: mean line, band of one standard deviation over seeds, seeds thin."""
    clocks = clocks_of(groups)
    chosen = looks.of(groups)
    series = []
    for found in groups:
        parts = {i: found.on(clock) for i, clock in enumerate(clocks)}
        series.append(
            Series(
                name=found.name,
                seeds=len(found.runs),
                look=chosen[found.name],
                updates=_thin(over_updates([run.metrics for run in found.runs], metric)),
                seconds={
                    i: over_seconds([run.metrics for run in part.runs], metric)
                    for i, part in parts.items()
                    if part is not None
                },
                runs=[
                    _track(run.seed, clocks.index(run.clock), run.metrics, [finite(e.get(metric)) for e in run.metrics])
                    for run in found.runs
                ],
            )
        )
    return Chart(
        stem=stem,
        title=title,
        note="Line: mean over seeds, as far as all of them ran. Band: ± one standard deviation. Thin: each seed.",
        y_label=_NAMES.get(metric, metric),
        log_y=metric != "accuracy",
        series=series,
        clocks=clocks,
        threshold=threshold,
        against=against,
    )


def time_scale_charts(stem: str, title: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    """One chart for each layer: mean and standard deviation of the units' time scales; none without records of it."""
    layers = time_scale_layers([run.metrics for found in groups for run in found.runs])
    chosen = looks.of(groups)
    charts = []
    for place, layer in enumerate(layers, start=1):
        series = []
        for found in groups:
            curve = time_scale_spread([run.metrics for run in found.runs], layer)
            if not curve.x:
                continue
            runs = [
                _track(run.seed, 0, run.metrics, [_mean_scale(e, layer) for e in run.metrics]) for run in found.runs
            ]
            series.append(Series(found.name, len(found.runs), chosen[found.name], _thin(curve), {}, runs))
        charts.append(
            Chart(
                stem=stem if len(layers) == 1 else f"{stem}_{place}",
                title=title if len(layers) == 1 else f"{title}, layer {layer}",
                note="Line: mean over the units of all seeds of −1/log φ(b), from the forget bias alone. Band: ± one "
                "standard deviation over the units. Thin: the mean of each seed.",
                y_label="time scale (steps)",
                log_y=True,
                series=series,
                band_in_view=True,
            )
        )
    return charts


def _mean_scale(evaluation: Mapping[str, object], layer: str) -> float | None:
    scales = evaluation.get("time_scales")
    statistics = scales.get(layer) if isinstance(scales, dict) else None
    return finite(statistics.get("mean")) if isinstance(statistics, dict) else None


def _track(seed: int, clock: int, metrics: Sequence[Mapping[str, float]], values: list[float | None]) -> Track:
    every = _stride(len(metrics))
    return Track(
        seed,
        clock,
        [float(evaluation["update"]) for evaluation in metrics][::every],
        [float(evaluation["seconds"]) for evaluation in metrics][::every],
        values[::every],
    )


def _thin(curve: Curve) -> Curve:
    every = _stride(len(curve.x))
    return Curve(curve.n, curve.x[::every], curve.mean[::every], curve.std[::every])


def _stride(points: int) -> int:
    return -(-points // MOST_POINTS) or 1
