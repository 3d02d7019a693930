"""What every task that draws its batches promises."""

from __future__ import annotations

import pytest
import torch

from gatedrnn.lab.tasks import TASKS, FreshTask

FRESH: dict[str, type[FreshTask]] = {name: task for name, task in TASKS.items() if issubclass(task, FreshTask)}
each_task = pytest.mark.parametrize("name", FRESH)


def test_the_registry_knows_the_names() -> None:
    assert list(TASKS) == [task.name for task in TASKS.values()]
    assert list(FRESH) == ["adding", "copy", "tones"]


@each_task
def test_sizes_and_names(name: str) -> None:
    task = FRESH[name](length=12)  # type: ignore[call-arg]
    batch = task.batch(5, torch.Generator().manual_seed(0))
    assert batch.input.shape == (task.steps, 5, task.input_size) and batch.input.dtype == torch.float32
    output = torch.randn(task.last or 0, 5, task.output_size)
    measured = task.measure(output, batch.target)
    assert set(measured) == {"loss", task.metric}
    # The loss that is trained is the mean of what is measured.
    torch.testing.assert_close(measured["loss"].mean(), task.loss(output, batch.target))


@each_task
def test_batches_are_fresh_and_come_from_the_generator_alone(name: str) -> None:
    task = FRESH[name](length=12)  # type: ignore[call-arg]
    generator = torch.Generator().manual_seed(7)
    before = torch.get_rng_state()
    first, second = task.batch(5, generator), task.batch(5, generator)
    assert torch.equal(torch.get_rng_state(), before)
    again = task.batch(5, torch.Generator().manual_seed(7))
    assert torch.equal(first.input, again.input) and torch.equal(first.target, again.target)
    assert not torch.equal(first.input, second.input)


@each_task
@pytest.mark.parametrize("length", [1, 0, -5, 10**9 + 1, 10**400])
def test_an_impossible_length(name: str, length: int) -> None:
    with pytest.raises(ValueError, match=f"^length must be between 2 and 1000000000, got {length}$"):
        FRESH[name](length=length).check()  # type: ignore[call-arg]


@each_task
def test_the_shortest_length(name: str) -> None:
    task = FRESH[name](length=2)  # type: ignore[call-arg]
    task.check()
    assert task.batch(3, torch.Generator()).input.shape[0] == task.steps
