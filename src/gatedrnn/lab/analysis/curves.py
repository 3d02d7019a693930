"""Curves of several seeds as one: mean and deviation where every seed has a value, and nowhere else.

A mean over the seeds that happen to be left would jump where one ends, so a curve of means ends with its shortest run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gatedrnn.lab.analysis.thresholds import Evaluation, finite

#: How many points a curve against time has.
GRID = 201


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation at each x, of n seeds (n − 1; 0 for one seed) or of their units (population's)."""

    n: int
    x: list[float]
    mean: list[float]
    std: list[float]


def over_updates(seeds: Sequence[Sequence[Evaluation]], metric: str) -> Curve:
    """The curve at the updates at which every seed has a finite value."""
    tables = [_by_update(metrics, metric) for metrics in seeds]
    common = sorted(set.intersection(*map(set, tables))) if tables else []
    return _curve([[table[update] for update in common] for table in tables], [float(u) for u in common])


def over_seconds(seeds: Sequence[Sequence[Evaluation]], metric: str) -> Curve:
    """The curve at equal steps of training time, from the last start to the first end, each seed interpolated linearly.

    A seed counts up to its first value that is not finite.
    """
    tracks = [_track(metrics, metric) for metrics in seeds]
    if not tracks or not all(tracks):
        return Curve(len(tracks), [], [], [])
    begin = max(track[0][0] for track in tracks)
    end = min(track[-1][0] for track in tracks)
    if end < begin:
        return Curve(len(tracks), [], [], [])
    grid = np.linspace(begin, end, GRID if end > begin else 1)
    values = [np.interp(grid, [at for at, _ in track], [value for _, value in track]).tolist() for track in tracks]
    return _curve(values, grid.tolist())


def time_scale_layers(seeds: Sequence[Sequence[Evaluation]]) -> list[str]:
    """The layers that have time scales in any of the runs, in order."""
    found = {layer for metrics in seeds for line in metrics for layer in line.get("time_scales") or {}}
    return sorted(found, key=lambda layer: (len(layer.partition("_")[0]), layer))  # l2 before l10


def time_scale_spread(seeds: Sequence[Sequence[Evaluation]], layer: str) -> Curve:
    """Mean and deviation over the units of a layer in all seeds together, at the updates that every seed has.

    Every seed has as many units, so the mean is that of the means and the variance E[std² + mean²] − mean².
    """
    tables = [_units(metrics, layer) for metrics in seeds]
    common = sorted(set.intersection(*map(set, tables))) if tables else []
    mean, std = [], []
    for update in common:
        units = [table[update] for table in tables]
        middle = math.fsum(m / len(units) for m, _ in units)
        # Deviations from the middle, not E[x²] − E[x]², which loses digits, and by hypot, whose squares do not
        # overflow: the fast gate has time scales of 1e200 at pre-activations below 7.
        away = math.hypot(*(part for m, s in units for part in (s, m - middle)))
        mean.append(middle)
        std.append(away / math.sqrt(len(units)))
    return Curve(len(tables), [float(u) for u in common], mean, std)


def _by_update(metrics: Sequence[Evaluation], metric: str) -> dict[int, float]:
    values = ((int(line["update"]), finite(line.get(metric))) for line in metrics)
    return {update: value for update, value in values if value is not None}


def _track(metrics: Sequence[Evaluation], metric: str) -> list[tuple[float, float]]:
    track: list[tuple[float, float]] = []
    for line in metrics:
        seconds, value = finite(line.get("seconds")), finite(line.get(metric))
        if seconds is None or value is None:
            break
        track.append((seconds, value))
    return track


def _units(metrics: Sequence[Evaluation], layer: str) -> dict[int, tuple[float, float]]:
    units = {}
    for line in metrics:
        scales = (line.get("time_scales") or {}).get(layer) or {}
        mean, std = finite(scales.get("mean")), finite(scales.get("std"))
        if mean is not None and std is not None:
            units[int(line["update"])] = (mean, std)
    return units


def _curve(values: Sequence[Sequence[float]], x: list[float]) -> Curve:
    n = len(values)
    if not x:
        return Curve(n, [], [], [])
    table = np.asarray(values, dtype=np.float64)
    size = np.maximum(np.abs(table).max(axis=0), np.finfo(np.float64).tiny)  # of one, so that no square overflows
    std = size * np.std(table / size, axis=0, ddof=1) if n > 1 else np.zeros(len(x))
    return Curve(n, x, (size * np.mean(table / size, axis=0)).tolist(), std.tolist())
