"""Statistics over seeds: updates to a threshold, means and intervals, curves, comparisons."""

from __future__ import annotations

from gatedrnn.lab.analysis.curves import (
    Curve,
    over_seconds,
    over_updates,
    time_scale_layers,
    time_scale_spread,
)
from gatedrnn.lab.analysis.pairs import Factor, Paired, factor_between, factors, paired
from gatedrnn.lab.analysis.rounds import Middle, middle_of
from gatedrnn.lab.analysis.seeds import (
    LEVEL,
    Arrivals,
    Mean,
    Median,
    arrivals_of,
    half_width_of_difference,
    interval_of,
    mean_of,
    median_of,
)
from gatedrnn.lab.analysis.thresholds import Arrival, arrival, finite, seconds_to, updates_to

__all__ = [
    "LEVEL",
    "Arrival",
    "Arrivals",
    "Curve",
    "Factor",
    "Mean",
    "Median",
    "Middle",
    "Paired",
    "arrival",
    "arrivals_of",
    "factor_between",
    "factors",
    "finite",
    "half_width_of_difference",
    "interval_of",
    "mean_of",
    "median_of",
    "middle_of",
    "over_seconds",
    "over_updates",
    "paired",
    "seconds_to",
    "time_scale_layers",
    "time_scale_spread",
    "updates_to",
]
