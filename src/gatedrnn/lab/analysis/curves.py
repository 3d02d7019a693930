"""Curves of several seeds as one: mean and standard deviation where every seed has a value.

A mean over the remaining seeds would jump where one ends, so a curve of means ends with its shortest run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gatedrnn.lab.analysis.thresholds import Evaluation, finite

#: The number of points of a curve against time.
GRID = 201
_MOST = 300.0  # of a deviation of logarithms: the exponential of a larger one could overflow


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation at each x, of n seeds (n − 1; 0 for one seed) or of their units (population's).

    For a logarithmic axis both are computed on the logarithm, where a band cannot reach zero: ``log_mean`` is the line,
    and the band goes from log_mean / factor to log_mean · factor. None if a value has no logarithm.
    """

    n: int
    x: list[float]
    mean: list[float]
    std: list[float]
    log_mean: list[float | None]
    factor: list[float | None]


def over_updates(seeds: Sequence[Sequence[Evaluation]], metric: str, at: str = "update") -> Curve:
    """The curve at the updates (or another field ``at``) at which every seed has a finite value."""
    tables = [_by_place(metrics, metric, at) for metrics in seeds]
    common = sorted(set.intersection(*map(set, tables))) if tables else []
    return _curve([[table[place] for place in common] for table in tables], common)


def over_seconds(seeds: Sequence[Sequence[Evaluation]], metric: str) -> Curve:
    """The curve at equal steps of training time, from the last start to the first end, each seed interpolated linearly.

    A seed counts up to its first value that is not finite.
    """
    tracks = [_track(metrics, metric) for metrics in seeds]
    if not tracks or not all(tracks):
        return _empty(len(tracks))
    begin = max(track[0][0] for track in tracks)
    end = min(track[-1][0] for track in tracks)
    if end < begin:
        return _empty(len(tracks))
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
    # The deviation of the logarithm that a lognormal distribution with this mean and deviation has.
    spread = [math.sqrt(_log1p_square(s / m)) if m > 0 else None for m, s in zip(mean, std, strict=True)]
    factor = [None if s is None else math.exp(min(s, _MOST)) for s in spread]
    log_mean = [m if m > 0 else None for m in mean]
    return Curve(len(tables), [float(u) for u in common], mean, std, log_mean, factor)


def _by_place(metrics: Sequence[Evaluation], metric: str, at: str) -> dict[float, float]:
    values = ((finite(line.get(at)), finite(line.get(metric))) for line in metrics)
    return {place: value for place, value in values if place is not None and value is not None}


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
        return _empty(n)
    table = np.asarray(values, dtype=np.float64)
    size = np.maximum(np.abs(table).max(axis=0), np.finfo(np.float64).tiny)  # so that no square overflows
    mean, std = size * np.mean(table / size, axis=0), size * _deviation(table / size)
    positive = np.min(table, axis=0) > 0
    logs = np.log(np.where(positive, table, 1.0))
    log_mean, factor = np.exp(np.mean(logs, axis=0)), np.exp(np.minimum(_deviation(logs), _MOST))
    return Curve(n, x, mean.tolist(), std.tolist(), _where(positive, log_mean), _where(positive, factor))


def _empty(n: int) -> Curve:
    return Curve(n, [], [], [], [], [])


def _deviation(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over seeds; none for a single one."""
    return np.std(table, axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])


def _where(known: NDArray[np.bool_], values: NDArray[np.float64]) -> list[float | None]:
    return [value if there else None for there, value in zip(known.tolist(), values.tolist(), strict=True)]


def _log1p_square(ratio: float) -> float:
    """log(1 + ratio²), also where the square overflows."""
    return math.log1p(ratio * ratio) if ratio < 1e150 else 2 * math.log(ratio)
