from __future__ import annotations

import pytest

from gatedrnn.lab.training import SCHEDULES, Training
from gatedrnn.lab.training.pace import Pace
from gatedrnn.lab.training.schedule import averages, learning_rate, without_a_best


def _rates(training: Training, updates: list[int]) -> list[float]:
    return [learning_rate(training, Pace.of(training, None), update, [], True) for update in updates]


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
    pace = Pace.of(training, None)
    assert learning_rate(training, pace, 0, metrics, True) == pytest.approx(rate)
    mirrored = [None if metric is None else -metric for metric in metrics]
    assert learning_rate(training, pace, 0, mirrored, False) == pytest.approx(rate)


def test_lengths_in_epochs() -> None:
    training = Training(lr=1.0, epochs=6, schedule="steps", decay=0.1, decay_at=(2, 4))
    pace = Pace.of(training, 25)
    assert pace == Pace(updates=150, evaluate_every=25, decay_at=(50, 100), updates_an_epoch=25)
    rates = [learning_rate(training, pace, update, [], True) for update in (0, 49, 50, 99, 100, 149)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert (pace.epoch(0), pace.epoch(40), pace.epoch(150)) == (0, 1.6, 6)
    assert Pace.of(Training(epochs=6, evaluate_every=2), 25).evaluate_every == 50
    # A run in updates on a task with epochs.
    assert Pace.of(Training(updates=30, evaluate_every=10), 25) == Pace(30, 10, (), 25)
    assert Pace.of(Training(updates=30), None).epoch(7) is None


def test_waiting_for_a_better_metric() -> None:
    assert [without_a_best(values, True) for values in ([], [3.0], [3.0, 4.0], [3.0, 4.0, 3.0], [3.0, 4.0, 2.0])] == [
        0, 0, 1, 2, 0,
    ]  # fmt: skip
    assert without_a_best([0.1, 0.5, 0.4, None], False) == 2


def test_the_published_trigger_of_averaging() -> None:
    """A metric worse than the best of all but the last few before it; then for good."""
    training = Training(optimizer="sgd", average_patience=2)
    falling = [5.0, 4.0, 3.0, 2.0]
    assert not averages(training, falling, True)
    assert not averages(training, [*falling, 3.5], True)  # the best but the last two of [5, 4, 3, 2] is 4
    assert averages(training, [*falling, 4.5], True)
    assert averages(training, [*falling, 4.5, 1.0], True)
    assert not averages(training, [1.0, 2.0], True)  # not before there are so many
    assert averages(training, [1.0, 0.5, 0.7, 2.0], True)
    assert averages(training, [-m for m in (5.0, 4.0, 3.0, 2.0, 4.5)], False)
    assert not averages(Training(optimizer="sgd"), [*falling, 9.0], True)
