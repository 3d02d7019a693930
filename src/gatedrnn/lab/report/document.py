"""What a report consists of, before it becomes Markdown or a page: sections with text, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gatedrnn.lab.analysis import Curve
from gatedrnn.lab.report.looks import ModelLook


@dataclass(frozen=True)
class Table:
    """Plain text in rows; ``models`` names the column whose entries are models, shown with their colour."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    models: int | None = None


@dataclass(frozen=True)
class Track:
    """One run in a chart."""

    seed: int
    clock: int
    updates: list[float]
    seconds: list[float]
    value: list[float | None]


@dataclass(frozen=True)
class Series:
    """One model in a chart: its mean against updates, against seconds by clock, and its runs."""

    name: str
    seeds: int
    look: ModelLook
    updates: Curve
    seconds: dict[int, Curve]
    runs: list[Track]


@dataclass(frozen=True)
class Chart:
    """Curves of several models. ``clocks`` are what times were measured on; empty if time is not an axis.

    ``against`` is the x axis on which the page opens, "updates" or "seconds".
    ``band_in_view``: the band is what the chart is about (a spread over units), so the axis makes room for it.
    """

    stem: str
    title: str
    note: str
    y_label: str
    log_y: bool
    series: list[Series]
    clocks: list[str] = field(default_factory=list)
    threshold: float | None = None
    band_in_view: bool = False
    against: str = "updates"


@dataclass(frozen=True)
class Section:
    """A part of the report: what is compared with the paper, then the charts, then the tables behind them.

    ``verdict`` is empty where nothing of the paper is compared.
    """

    anchor: str
    title: str
    label: str = ""
    verdict: str = ""
    text: list[str] = field(default_factory=list)
    verdicts: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """The whole report."""

    title: str
    text: list[str]
    warnings: list[str]
    overview: Table
    sections: list[Section]

    def charts(self) -> list[Chart]:
        """Every chart, in order."""
        return [chart for section in self.sections for chart in section.charts]


def chart_json(chart: Chart) -> dict[str, Any]:
    """A chart as the page's script reads it, numbers to six digits."""

    def curve(found: Curve) -> dict[str, Any]:
        return {"x": _short(found.x), "mean": _short(found.mean), "std": _short(found.std)}

    return {
        "title": chart.title,
        "y_label": chart.y_label,
        "against": chart.against,
        "log_y": chart.log_y,
        "clocks": chart.clocks,
        "threshold": chart.threshold,
        "band_in_view": chart.band_in_view,
        "series": [
            {
                "name": series.name,
                "seeds": series.seeds,
                **series.look._asdict(),
                "updates": curve(series.updates),
                "seconds": {str(clock): curve(found) for clock, found in series.seconds.items()},
                "runs": [
                    {
                        "seed": run.seed,
                        "clock": run.clock,
                        "updates": _short(run.updates),
                        "seconds": _short(run.seconds),
                        "value": _short(run.value),
                    }
                    for run in series.runs
                ],
            }
            for series in chart.series
        ],
    }


def _short(values: list[float] | list[float | None]) -> list[float | int | None]:
    short = (None if value is None else float(f"{value:.6g}") for value in values)
    return [int(value) if value is not None and value.is_integer() else value for value in short]
