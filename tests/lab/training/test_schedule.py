from __future__ import annotations

import pytest

from gatedrnn.lab.training import SCHEDULES, Training
from gatedrnn.lab.training.schedule import learning_rate


def _rates(training: Training, updates: list[int]) -> list[float]:
    return [learning_rate(training, update, [], True) for update in updates]


def test_known_rates() -> None:
    assert _rates(Training(lr=1.0, updates=100), [0, 50, 99]) == [1, 1, 1]
    steps = Training(lr=1.0, updates=100, schedule="steps", decay=0.1, decay_at=(10, 20))
    assert _rates(steps, [0, 9, 10, 19, 20, 99]) == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert _rates(Training(lr=1.0, updates=100, schedule="linear"), [0, 50, 99]) == pytest.approx([1, 0.5, 0.01])
    cosine = _rates(Training(lr=1.0, updates=100, schedule="cosine"), [0, 25, 50, 100])
    assert cosine == pytest.approx([1, 0.8535534, 0.5, 0], abs=1e-7)
    assert len(SCHEDULES) == 5


@pytest.mark.parametrize(
    ("metrics", "rate"),
    [
        ([], 1.0),
        ([1.0, 2.0], 1.0),  # one evaluation without a new best
        ([1.0, 2.0, 1.0], 0.1),  # two
        ([1.0, 2.0, 1.0, 0.5, 0.6], 0.1),
        ([1.0, 2.0, 1.0, 0.5, 0.6, 0.5], 0.01),
        ([1.0, 1.0, 1.0, 1.0, 1.0], 0.01),
        ([None, None], 0.1),  # not finite is never better
    ],
)
def test_plateaus(metrics: list[float | None], rate: float) -> None:
    training = Training(lr=1.0, schedule="plateau", decay=0.1, patience=2)
    assert learning_rate(training, 0, metrics, True) == pytest.approx(rate)
    mirrored = [None if metric is None else -metric for metric in metrics]
    assert learning_rate(training, 0, mirrored, False) == pytest.approx(rate)
