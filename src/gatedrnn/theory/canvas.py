"""How a figure becomes a PNG and an SVG: one style, no global state, the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_STYLE: Any = {  # matplotlib types its keys as one literal each
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine, Greek included
    "font.size": 11,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 11,
    "axes.titleweight": "normal",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.unicode_minus": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.9,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gatedrnn",  # or the identifiers would differ from run to run
}
DPI = 150
_METADATA: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def render(
    draw: Callable[[], Figure], kinds: Sequence[str] = ("png", "svg"), resolution: int = DPI
) -> dict[str, bytes]:
    """The drawing as {"png": …, "svg": …}, without date or program version in it."""
    images = {}
    with mpl.rc_context(_STYLE):
        figure = draw()
        for kind in kinds:
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, dpi=resolution, metadata=_METADATA[kind])
            images[kind] = stream.getvalue()
    return images
