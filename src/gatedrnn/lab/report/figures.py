"""The charts as PNG and SVG."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gatedrnn.lab.analysis import Curve
from gatedrnn.lab.analysis.thresholds import LARGEST
from gatedrnn.lab.report.document import Chart, Series
from gatedrnn.lab.report.text import for_figure
from gatedrnn.theory.canvas import DPI, new_figure, render

_SMALL = 90  # dots an inch of a figure in a document
_MOST_DECADES, _TICKS = 50, 6  # of a logarithmic axis
_DASHES: dict[str, Any] = {  # SVG's dashes in matplotlib's notation
    "": "-",
    "7 3": (0, (4.0, 1.7)),
    "2 3": (0, (1.2, 1.7)),
    "9 3 2 3": (0, (5.0, 1.5, 1.2, 1.5)),
}


def images(chart: Chart) -> dict[str, bytes]:
    """The chart as {"png": …, "svg": …}: against updates, and against time once for each clock that has values."""
    return _rendered(chart, [None, *_clocks(chart)])


def small_image(chart: Chart) -> bytes:
    """The chart as a small PNG for a document, with only its main x axis."""
    against_time = _clocks(chart) if chart.against == "seconds" else []
    return _rendered(chart, against_time or [None], ("png",), _SMALL)["png"]


def _clocks(chart: Chart) -> list[int]:
    return [clock for clock in range(len(chart.clocks)) if _values(chart, clock)]


def _values(chart: Chart, clock: int | None) -> list[float]:
    """The values of the runs on this clock; None: of all."""
    runs = (run for series in chart.series for run in series.runs if clock is None or run.clock == clock)
    return [value for run in runs for value in run.value if value is not None]


def _rendered(
    chart: Chart, clocks: Sequence[int | None], kinds: Sequence[str] = ("png", "svg"), resolution: int = DPI
) -> dict[str, bytes]:
    """A panel for each of the clocks; None is updates."""

    def draw() -> Figure:
        panels = len(clocks)
        figure, axes = new_figure(1, panels, (1.0 + 5.2 * panels, 4.6))
        figure.suptitle(_broken(for_figure(chart.title, 160), 56 * panels), fontsize=12)
        for panel, clock in zip(axes, clocks, strict=True):
            for series in chart.series:
                _draw_series(panel, chart, series, clock)
            _dress(panel, chart, clock)
        handles = [
            Line2D([], [], color=s.look.light, linestyle=_DASHES[s.look.dash], label=_label(s)) for s in chart.series
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 2 * panels) or 1)
        return figure

    with warnings.catch_warnings(), np.errstate(over="ignore"):  # the margin around a time scale may overflow
        # A name may have characters that the font lacks: they are drawn as boxes, without a warning.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        return render(draw, kinds, resolution)


def _broken(title: str, width: int) -> str:
    """The title in lines that are not wider than the panels; a final part in parentheses gets its own line."""
    if len(title) <= width:
        return title
    head, bracket, rest = title.rpartition(" (")
    return "\n".join([*wrap(head, width), *wrap(f"({rest}", width)] if bracket else wrap(title, width))


def _label(series: Series) -> str:
    return f"{for_figure(series.name)} ({series.legend})"


def _draw_series(panel: Axes, chart: Chart, series: Series, clock: int | None) -> None:
    curve = series.updates if clock is None else series.seconds.get(clock)
    if curve is None:
        return
    colour = series.look.light
    for run in series.runs:
        if clock is None or run.clock == clock:
            x = run.updates if clock is None else run.seconds
            values = [_nan(value) for value in run.value]
            panel.plot(x, values, color=colour, linewidth=0.7, alpha=0.45)
            if run.diverged and run.end is not None:
                panel.plot(x[run.end], values[run.end], color=colour, marker="x", markersize=8, markeredgewidth=2)
    middle, low, high = _band(curve, _is_log(chart, clock))
    panel.plot(curve.x, middle, color=colour, linestyle=_DASHES[series.look.dash])
    panel.fill_between(curve.x, low, high, color=colour, alpha=0.13, linewidth=0)


def _band(curve: Curve, log: bool) -> tuple[list[float], list[float], list[float]]:
    """The line and the ends of the band."""
    if log:
        middle, factor = ([_nan(value) for value in column] for column in (curve.log_mean, curve.factor))
        pairs = list(zip(middle, factor, strict=True))
        return middle, [m / f for m, f in pairs], [min(m * f, LARGEST) for m, f in pairs]
    both = list(zip(curve.mean, curve.std, strict=True))
    return curve.mean, [m - s for m, s in both], [m + s for m, s in both]


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _widen(panel: Axes, values: Sequence[float]) -> None:
    """Set ticks where positive values span many powers of ten: matplotlib's would overflow."""
    ends = [math.log10(max(end(values), sys.float_info.min)) for end in (min, max)]
    low, high = math.floor(ends[0]), min(math.ceil(ends[1]), sys.float_info.max_10_exp)
    if high - low > _MOST_DECADES:
        panel.set_yticks([10.0**power for power in range(low, high + 1, -(-(high - low) // _TICKS))])
        panel.minorticks_off()
        panel.set_ylim(max(10.0**low, sys.float_info.min), 10.0**high)


def _is_log(chart: Chart, clock: int | None) -> bool:
    """Whether the axis of this panel is logarithmic; it needs at least one positive value."""
    return chart.log_y and any(value > 0 for value in _values(chart, clock))


def _dress(panel: Axes, chart: Chart, clock: int | None) -> None:
    if _is_log(chart, clock):
        panel.set_yscale("log", nonpositive="mask")
        _widen(panel, [value for value in _values(chart, clock) if value > 0])
        low, high = panel.get_ylim()
        if high / low < 10:  # 3 and 4 instead of 3 × 10⁰
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter("{x:g}")
    if chart.threshold is not None:
        panel.axhline(chart.threshold, color="#777777", linewidth=1.0, linestyle=(0, (5.0, 3.0)))
    panel.set_ylabel(for_figure(chart.y_label))
    panel.set_xlabel(chart.steps if clock is None else "training time (seconds)")
    if clock is None:
        panel.locator_params(axis="x", integer=True)  # no half epochs
    if clock is not None:
        panel.set_title(for_figure(chart.clocks[clock], 60), fontsize=9)
