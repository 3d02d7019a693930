"""What the monitor recorded, as charts: saturated forget gates over training, and gradients along the sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatedrnn.lab.analysis import finite, over_updates
from gatedrnn.lab.report.charts import step_of
from gatedrnn.lab.report.document import Chart, Series, Track
from gatedrnn.lab.report.groups import Group
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.runs import LabRun

_Points = list[tuple[float, float | None]]


def stability_charts(stem: str, title: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    """Two charts for each layer with such records; none without."""
    layers = sorted({layer for found in groups for run in found.runs for line in run.metrics for layer in _of(line)})
    step = step_of(groups)
    charts = []
    for place, layer in enumerate(layers, start=1):
        suffix = "" if len(layers) == 1 else f"_{place}"
        where = title if len(layers) == 1 else f"{title}, layer {layer}"
        charts += [
            _chart(
                f"{stem}_saturated{suffix}",
                f"Saturated forget gates: {where}",
                "Share of forget gates with 1−f below 1e-4, on sequences that were not used for training.",
                ("share of forget gates", f"{step}s", False),
                groups,
                looks,
                lambda run, layer=layer: [
                    (float(e[step]), finite(_of(e, layer).get("saturated"))) for e in run.metrics
                ],  # type: ignore[misc]
            ),
            _chart(
                f"{stem}_gradients{suffix}",
                f"Gradient along the sequence: {where}",
                "Norm of the gradient of the loss with respect to the layer's input in each part of the sequence, from "
                "the first steps to the last, on sequences that were not used for training, at the last evaluation.",
                ("norm of the gradient", "part of the sequence", True),
                groups,
                looks,
                lambda run, layer=layer: _last_norms(run, layer),  # type: ignore[misc]
            ),
        ]
    return [chart for chart in charts if chart is not None]


def _chart(
    stem: str,
    title: str,
    what: str,
    axes: tuple[str, str, bool],
    groups: Sequence[Group],
    looks: Looks,
    points_of: Callable[[LabRun], _Points],
) -> Chart | None:
    """``axes`` are the labels of y and x, and whether y is logarithmic."""
    chosen, series = looks.of(groups), []
    for found in groups:
        points = [points_of(run) for run in found.runs]
        curve = over_updates([[{"x": x, "y": y} for x, y in of_run] for of_run in points], "y", "x")
        if not curve.x:
            continue
        tracks = [
            Track(
                run.seed,
                0,
                [x for x, _ in of_run],
                [0.0] * len(of_run),
                [y for _, y in of_run],
                diverged=run.outcome == "diverged",
            )
            for run, of_run in zip(found.runs, points, strict=True)
        ]
        series.append(Series(found.name, chosen[found.name], curve, {}, tracks))
    y_label, steps, log_y = axes
    note = f"{what} Line: mean over seeds. Thin lines: single seeds."
    return Chart(stem, title, note, y_label, log_y, series, steps=steps) if series else None


def _of(line: Mapping[str, Any], layer: str | None = None) -> Mapping[str, Any]:
    """What a line recorded for all layers, or for one."""
    found: Mapping[str, Any] = line.get("stability") or {}
    return found if layer is None else found.get(layer) or {}


def _last_norms(run: LabRun, layer: str) -> _Points:
    recorded = [norms for line in run.metrics if (norms := _of(line, layer).get("gradient_norms"))]
    known = [norms for norms in recorded if any(finite(norm) is not None for norm in norms)]
    return [(float(part), finite(norm)) for part, norm in enumerate(known[-1], start=1)] if known else []
