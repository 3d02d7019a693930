"""The learning rate, as a function of how far the run is: there is no state to keep."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gatedrnn.lab.training.options import Training


def learning_rate(training: Training, update: int, metrics: Sequence[float | None], lower_is_better: bool) -> float:
    """The learning rate of the next update, when ``update`` of them are done and ``metrics`` were evaluated so far."""
    share = update / training.updates
    if training.schedule == "steps":
        return training.lr * (training.decay or 0.0) ** sum(update >= at for at in training.decay_at or ())
    if training.schedule == "linear":
        return training.lr * (1.0 - share)
    if training.schedule == "cosine":
        return training.lr * 0.5 * (1.0 + math.cos(math.pi * share))
    if training.schedule == "plateau":
        return training.lr * (training.decay or 0.0) ** _plateaus(metrics, lower_is_better, training.patience or 0)
    return training.lr


def _plateaus(metrics: Sequence[float | None], lower_is_better: bool, patience: int) -> int:
    """How often the metric has gone ``patience`` evaluations without a new best."""
    best, waited, plateaus = math.inf, 0, 0
    for metric in metrics:
        value = math.inf if metric is None else metric if lower_is_better else -metric
        if value < best:
            best, waited = value, 0
        else:
            waited += 1
        if waited == patience:
            waited, plateaus = 0, plateaus + 1
    return plateaus
