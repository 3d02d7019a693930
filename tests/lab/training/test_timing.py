"""The updates that are timed are those of training."""

from __future__ import annotations

from pathlib import Path

import torch

from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training, open_trained, train
from gatedrnn.lab.training.timing import Updates


def test_timed_updates_are_those_of_training(tmp_path: Path) -> None:
    """After three of each the weights are the same to the bit."""
    training = Training(updates=3, evaluate_every=3, batch_size=4, evaluation_size=4, threads=1)
    run = Run(Adding(12), Model(hidden_size=8), training)
    train(run, tmp_path / "run")
    trained = open_trained(tmp_path / "run").network.state_dict()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        updates = Updates(run)
        times = [updates.make() for _ in range(3)]
    finally:
        torch.set_num_threads(threads)
    assert all(0 < seconds < 60 for seconds in times)
    made = updates._network.state_dict()
    assert made.keys() == trained.keys()
    assert all(torch.equal(made[name], trained[name]) for name in made)


def test_a_turn_has_one_update_that_does_not_count() -> None:
    updates = Updates(Run(Adding(4), Model(hidden_size=2), Training(batch_size=2)))
    seconds = iter([9.0, 1.0, 3.0, 8.0])
    updates.make = lambda: next(seconds)  # type: ignore[method-assign]
    assert updates.turn(4.0) == 2.0
    assert next(seconds) == 8.0
