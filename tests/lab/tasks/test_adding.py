from __future__ import annotations

import pytest
import torch

from gatedrnn.lab.tasks import Adding


@pytest.mark.parametrize("length", [2, 7, 50])
def test_one_marker_in_each_half_and_the_target_is_the_sum(length: int) -> None:
    batch, half = Adding(length).batch(500, torch.Generator().manual_seed(0)), length // 2
    values, markers = batch.input.unbind(-1)
    assert values.min() >= 0 and values.max() < 1
    assert set(markers.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(markers[:half].sum(0), torch.ones(500))
    assert torch.equal(markers[half:].sum(0), torch.ones(500))
    assert torch.equal((values * markers).sum(0), batch.target[0, :, 0])


def test_every_place_is_marked_equally_often() -> None:
    counts = Adding(10).batch(20000, torch.Generator().manual_seed(1)).input[..., 1].sum(1)
    assert counts.min() > 3800 and counts.max() < 4200  # 4000 ± 57


def test_the_memoryless_level_is_a_sixth() -> None:
    task = Adding(20)
    target = task.batch(100_000, torch.Generator().manual_seed(2)).target
    measured = task.measure(torch.ones_like(target), target)
    assert measured["mse"].shape == target.shape  # of each sequence its own
    assert float(measured["mse"].mean()) == pytest.approx(1 / 6, rel=0.01)
    assert torch.equal(measured["loss"], measured["mse"])


def test_the_longest_dependency_is_the_length() -> None:
    assert Adding(300).t_max == 300
    assert Adding().length == 5000
