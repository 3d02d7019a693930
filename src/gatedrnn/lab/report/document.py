"""The contents of a report before it becomes Markdown or a page: sections with text, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gatedrnn.lab.analysis import Curve
from gatedrnn.lab.report.looks import ModelLook


@dataclass(frozen=True)
class Table:
    """Plain text in rows; ``models`` names the column whose entries are models, shown with their colour.

    ``detail``: a shorter version of the report may leave it out.
    """

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    models: int | None = None
    detail: bool = False


@dataclass(frozen=True)
class Track:
    """One run in a chart: its values against updates (or epochs) and seconds, and whether it diverged at the end."""

    seed: int
    clock: int
    updates: list[float]
    seconds: list[float]
    value: list[float | None]
    diverged: bool = False

    @property
    def end(self) -> int | None:
        """The index of its last value; None if it has none."""
        return max((i for i, value in enumerate(self.value) if value is not None), default=None)


@dataclass(frozen=True)
class Series:
    """One model in a chart: its mean against updates (or epochs), against seconds by clock, and its runs."""

    name: str
    look: ModelLook
    updates: Curve
    seconds: dict[int, Curve]
    runs: list[Track]

    @property
    def legend(self) -> str:
        """How many seeds there are, and how many of them diverged."""
        count = "1 seed" if len(self.runs) == 1 else f"{len(self.runs)} seeds"
        diverged = sum(run.diverged for run in self.runs)
        return f"{count}, {diverged} diverged" if diverged else count


@dataclass(frozen=True)
class Chart:
    """Curves of several models. ``clocks`` name what the times were measured on; empty if time is not an axis.

    ``against`` is the initial x axis of the page, "updates" or "seconds"; ``steps`` is the label of the axis that is
    not time, which may count epochs. ``stem`` is the name of its files, chosen by the report and never by a record.
    ``band_in_view``: the band is the main content (a spread over units), so the axis limits include it.
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
    steps: str = "updates"


@dataclass(frozen=True)
class Picture:
    """An existing figure, as PNG."""

    stem: str
    title: str
    png: bytes


@dataclass(frozen=True)
class Section:
    """A part of the report: the comparison with the paper, then the charts, then their tables.

    ``verdict`` is empty where nothing of the paper is compared.
    """

    anchor: str
    title: str
    label: str = ""
    verdict: str = ""
    text: list[str] = field(default_factory=list)
    verdicts: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    #: Further labels that it covers.
    also: tuple[str, ...] = ()


#: The heading of the overview where it does not come first.
OVERVIEW_TITLE = "Tables and figures of the paper"


@dataclass(frozen=True)
class Document:
    """The whole report. ``notices`` are shown before everything else.

    ``overview`` is the ledger of the paper, ``counts`` its summary. It comes first, or after as many sections as
    ``before_overview`` says: where nothing of the paper was run, the runs that were made come first.
    """

    title: str
    counts: str
    text: list[str]
    notices: list[str]
    warnings: list[str]
    overview: Table
    sections: list[Section]
    before_overview: int = 0

    def charts(self) -> list[Chart]:
        """Every chart, in order."""
        return [chart for section in self.sections for chart in section.charts]

    def pictures(self) -> list[Picture]:
        """Every picture, in order."""
        return [picture for section in self.sections for picture in section.pictures]


def chart_json(chart: Chart) -> dict[str, Any]:
    """A chart as the page's script reads it, numbers to six digits."""

    def curve(found: Curve) -> dict[str, Any]:
        return {
            "x": _short(found.x),
            "mean": _short(found.mean),
            "std": _short(found.std),
            "log_mean": _short(found.log_mean),
            "factor": _short(found.factor),
        }

    return {
        "title": chart.title,
        "y_label": chart.y_label,
        "against": chart.against,
        "steps": chart.steps,
        "log_y": chart.log_y,
        "clocks": chart.clocks,
        "threshold": chart.threshold,
        "band_in_view": chart.band_in_view,
        "series": [
            {
                "name": series.name,
                "legend": series.legend,
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
                        "diverged_at": run.end if run.diverged else None,
                    }
                    for run in series.runs
                ],
            }
            for series in chart.series
        ],
    }


def _short(values: Sequence[float | None]) -> list[float | int | None]:
    short = (None if value is None else float(f"{value:.6g}") for value in values)
    return [int(value) if value is not None and value.is_integer() else value for value in short]
