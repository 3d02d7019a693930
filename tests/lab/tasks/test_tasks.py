"""What every task promises."""

from __future__ import annotations

import pytest
import torch

from gatedrnn.lab.tasks import TASKS

each_task = pytest.mark.parametrize("name", TASKS)


@each_task
def test_sizes_and_names(name: str) -> None:
    task = TASKS[name](length=12)  # type: ignore[call-arg]
    x, target = task.batch(5, torch.Generator().manual_seed(0))
    assert task.name == name
    assert x.shape == (task.steps, 5, task.input_size) and x.dtype == torch.float32
    output = torch.zeros(task.last, 5, task.output_size)
    measured = task.measure(output, target)
    assert set(measured) == {"loss", task.metric}
    assert measured["loss"] == float(task.loss(output, target))


@each_task
def test_batches_are_fresh_and_come_from_the_generator_alone(name: str) -> None:
    task = TASKS[name](length=12)  # type: ignore[call-arg]
    generator = torch.Generator().manual_seed(7)
    before = torch.get_rng_state()
    first, second = task.batch(5, generator), task.batch(5, generator)
    assert torch.equal(torch.get_rng_state(), before)
    again = task.batch(5, torch.Generator().manual_seed(7))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], second[0])


@each_task
@pytest.mark.parametrize("length", [1, 0, -5])
def test_an_impossible_length(name: str, length: int) -> None:
    with pytest.raises(ValueError, match=f"^length must be at least 2, got {length}$"):
        TASKS[name](length=length).check()  # type: ignore[call-arg]


@each_task
def test_the_shortest_length(name: str) -> None:
    task = TASKS[name](length=2)  # type: ignore[call-arg]
    task.check()
    assert task.batch(3, torch.Generator())[0].shape[0] == task.steps
