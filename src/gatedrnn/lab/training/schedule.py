"""The learning rate, as a function of the progress of the run, without a state."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gatedrnn.lab.training.options import Training
from gatedrnn.lab.training.pace import Pace


def learning_rate(
    training: Training, pace: Pace, update: int, metrics: Sequence[float | None], lower_is_better: bool
) -> float:
    """The learning rate of the next update, when ``update`` of them are done and ``metrics`` were evaluated so far."""
    share = update / pace.updates
    if training.schedule == "steps":
        return training.lr * (training.decay or 0.0) ** sum(update >= at for at in pace.decay_at)
    if training.schedule == "linear":
        return training.lr * (1.0 - share)
    if training.schedule == "cosine":
        return training.lr * 0.5 * (1.0 + math.cos(math.pi * share))
    if training.schedule == "plateau":
        return training.lr * (training.decay or 0.0) ** _plateaus(metrics, lower_is_better, training.patience or 0)
    return training.lr


def without_a_best(metrics: Sequence[float | None], lower_is_better: bool) -> int:
    """How many of the last evaluations have passed since the best one."""
    best, waited = math.inf, 0
    for value in _costs(metrics, lower_is_better):
        best, waited = (value, 0) if value < best else (best, waited + 1)
    return waited


def averages(training: Training, metrics: Sequence[float | None], lower_is_better: bool) -> bool:
    """Whether the weights are averaged by now: some evaluation was worse than the best of all but the last few."""
    patience = training.average_patience
    if patience is None:
        return False
    costs = _costs(metrics, lower_is_better)
    return any(cost > min(costs[: at - patience]) for at, cost in enumerate(costs) if at > patience)


def _costs(metrics: Sequence[float | None], lower_is_better: bool) -> list[float]:
    """Lower is better; a value that is not finite is never better."""
    return [math.inf if metric is None else metric if lower_is_better else -metric for metric in metrics]


def _plateaus(metrics: Sequence[float | None], lower_is_better: bool, patience: int) -> int:
    """How often the metric has gone ``patience`` evaluations without a new best."""
    best, waited, plateaus = math.inf, 0, 0
    for value in _costs(metrics, lower_is_better):
        if value < best:
            best, waited = value, 0
        else:
            waited += 1
        if waited == patience:
            waited, plateaus = 0, plateaus + 1
    return plateaus
