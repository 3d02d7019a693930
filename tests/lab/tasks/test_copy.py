from __future__ import annotations

import math

import pytest
import torch

from gatedrnn.lab.tasks import Copy


def test_the_papers_layout() -> None:
    T = 5
    batch = Copy(T).batch(300, torch.Generator().manual_seed(0))
    x, target = batch.input, batch.target
    assert x.shape == (T + 20, 300, 10)
    assert torch.equal(x.sum(-1), torch.ones(T + 20, 300))
    tokens = x.argmax(-1)
    assert set(tokens[:10].unique().tolist()) == set(range(1, 9))
    # Position T+11 counted from 1.
    assert torch.equal(tokens[T + 10], torch.full((300,), 9))
    assert torch.equal(tokens[10 : T + 10], torch.zeros(T, 300, dtype=torch.int64))
    assert torch.equal(tokens[T + 11 :], torch.zeros(9, 300, dtype=torch.int64))
    assert torch.equal(target, tokens[:10])


def test_loss_and_accuracy() -> None:
    task = Copy(5)
    target = task.batch(100, torch.Generator().manual_seed(1)).target

    def means(output: torch.Tensor) -> dict[str, float]:
        return {name: float(values.double().mean()) for name, values in task.measure(output, target).items()}

    blind = means(torch.zeros(10, 100, 10))
    assert blind["loss"] == pytest.approx(math.log(10))
    assert blind["accuracy"] == 0
    output = torch.nn.functional.one_hot(target, 10) * 100.0
    assert means(output) == {"loss": 0.0, "accuracy": 1.0}
    output[3] = output[3].roll(1, -1)
    assert means(output)["accuracy"] == pytest.approx(0.9)


def test_the_longest_dependency() -> None:
    assert Copy(100).t_max == 150
    assert Copy().length == 500
