"""Evaluation of a network on the splits of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.models import Carry, Network
from gatedrnn.lab.tasks import Batch, Task
from gatedrnn.lab.training.names import check_names
from gatedrnn.lab.training.options import Training
from gatedrnn.lab.training.ranks import Ranks

_MOST_VALUES = 2**25  # of a layer's output at a time, 128 MB


def autocast(training: Training) -> AbstractContextManager[object]:
    """torch's automatic mixed precision, if it is enabled."""
    kind = torch.device(training.device).type
    return torch.autocast(kind, torch.bfloat16, enabled=training.autocast is not None)


def wide(output: Tensor) -> Tensor:
    """In float32 at least: a loss is not computed in 16 bits."""
    return output if output.dtype == torch.float64 else output.float()


class Evaluation:
    """The splits of a task, opened once."""

    def __init__(self, task: Task, training: Training, ranks: Ranks | None = None) -> None:
        self.task, self.training, self.ranks = task, training, ranks or Ranks()
        self._splits = task.splits(training.evaluation_size)
        if "validation" not in self._splits:
            names = ", ".join(self._splits) or "none"
            raise ValueError(f"the splits of the task {task.name} must include 'validation', got {names}")

    def dropped(self, split: str) -> int:
        """Samples that do not fit into the rows of its batches and are left out."""
        return self._splits[split].dropped

    @property
    def has_test(self) -> bool:
        """Whether there is a test split, which is evaluated once, at the end."""
        return "test" in self._splits

    def sample(self, split: str, network: Network) -> Batch:
        """The batch for what is measured besides: a training batch or more, from all over the split, always the same.

        The samples of a split may be sorted, those of speech by word.
        """
        return self._splits[split].some(max(self._rows(network), self.training.batch_size))

    @torch.no_grad()
    def __call__(self, split: str, network: Network) -> dict[str, Any]:
        """The loss and the metric: means over all samples of the split, whatever the batches were.

        For a task with blocks of dependent samples, of the test split their sums too. Several processes share the rows
        of each batch; where blocks are kept, in their order, each goes through all of it.
        """
        block = self.task.block if split == "test" else None
        ranks = self.ranks if block is None else Ranks()
        kept: dict[str, list[Tensor]] = {}
        sums: dict[str, float] = {}
        samples = 0.0
        carry: Carry = None
        with evaluating(network):
            for whole in self._splits[split].batches(self._rows(network)):
                batch, share = ranks.part(whole)
                with autocast(self.training):
                    result = network(
                        batch.input.to(self.training.device), carry if batch.continues else None, batch.lengths
                    )
                carry = result.carry
                measured = self.task.measure(wide(result.output).cpu(), batch.target)
                self._check_sizes(measured)
                for name, values in measured.items():
                    total = float(values.sum(dtype=torch.float64)) if share else 0.0
                    sums[name] = sums.get(name, 0.0) + total
                    if block is not None:
                        kept.setdefault(name, []).append(values.double())
                samples += measured["loss"].numel() if share else 0
        samples, *totals = ranks.sums({"": samples, **sums}).values()
        sums = dict(zip(sums, totals, strict=True))
        found = self.task.summary({name: total / samples for name, total in sums.items()})
        if self.task.metric not in found:
            raise ValueError(
                f"the metric {self.task.metric!r} of the task {self.task.name} is not among its measures: "
                f"{', '.join(found)}"
            )
        check_names(self.task, found)
        if block is not None:
            blocks = {name: [float(part.sum()) for part in torch.cat(v).split(block)] for name, v in kept.items()}
            found["blocks"] = {"samples": block, "sums": blocks}
        return found

    def _check_sizes(self, measured: Mapping[str, Tensor]) -> None:
        """Raise ValueError unless there are as many values of each measure: their means are over the same samples."""
        if "loss" not in measured:
            raise ValueError(
                f"the measures of the task {self.task.name} must include 'loss', got {', '.join(measured) or 'none'}"
            )
        samples = measured["loss"].numel()
        for name, values in measured.items():
            if values.numel() != samples:
                raise ValueError(
                    f"the task {self.task.name} must measure the loss and {name!r} of the same samples, got "
                    f"{_shape(measured['loss'])} of the loss and {_shape(values)} of {name!r}"
                )

    def _rows(self, network: Network) -> int:
        """Sequences at a time: a function of the sizes alone, not of free memory, so that results are bit-identical."""
        widest = max(layer.hidden_size for layer in network.layers.values())
        return max(1, _MOST_VALUES // (self.task.steps * widest))


def _shape(values: Tensor) -> str:
    """The number of values, and their shape where it has several dimensions."""
    count = f"{values.numel()} value{'' if values.numel() == 1 else 's'}"
    return f"{count} {tuple(values.shape)}" if values.dim() > 1 else count


@contextmanager
def evaluating(network: Network) -> Iterator[None]:
    """Without dropout and the like inside the ``with``."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)
