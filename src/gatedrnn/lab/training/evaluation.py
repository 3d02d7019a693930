"""The fixed set of sequences on which a run is evaluated."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from gatedrnn.lab.models import Network
from gatedrnn.lab.tasks import Task
from gatedrnn.lab.training.options import Training

#: The evaluation set is the same for every run: its seed is nobody's. (The generator looks at 32 bits of it.)
EVALUATION_SEED = 2**32 - 1
_MOST_VALUES = 2**25  # of the layer's output at a time, 128 MB


def autocast(training: Training) -> AbstractContextManager[object]:
    """torch's automatic mixed precision, if it was asked for."""
    kind = torch.device(training.device).type
    return torch.autocast(kind, torch.bfloat16, enabled=training.autocast is not None)


class Evaluation:
    """Sequences of the task, drawn once, and what a network makes of them."""

    def __init__(self, task: Task, training: Training) -> None:
        generator = torch.Generator().manual_seed(EVALUATION_SEED)
        self.task, self.training = task, training
        self.input, self.target = task.batch(training.evaluation_size, generator)

    @torch.no_grad()
    def __call__(self, network: Network) -> dict[str, float]:
        """The loss and the metric. In chunks that depend on the sizes alone: memory must not decide about bits."""
        rows = max(1, _MOST_VALUES // (self.task.steps * network.layer.hidden_size))
        outputs = []
        for x in self.input.split(rows, dim=1):
            with autocast(self.training):
                outputs.append(network(x.to(self.training.device)).float().cpu())
        return self.task.measure(torch.cat(outputs, 1), self.target)
