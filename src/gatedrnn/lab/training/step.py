"""One update of the parameters: what the training loop makes, and what benchmarks time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gatedrnn.lab.models import Carry, Network
from gatedrnn.lab.tasks import Batch
from gatedrnn.lab.training.evaluation import autocast, wide
from gatedrnn.lab.training.ranks import Ranks
from gatedrnn.lab.training.run import Run


@dataclass(frozen=True)
class Step:
    """The loss and the norm of the gradient before the update, and the carry after the batch."""

    loss: float
    gradient_norm: float
    carry: Carry

    @property
    def finite(self) -> bool:
        """Whether the update was made: it was not if one of the two is not finite."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


def step(
    run: Run,
    network: Network,
    optimizer: torch.optim.Optimizer,
    parameters: list[nn.Parameter],
    batch: Batch,
    carry: Carry,
    ranks: Ranks,
    share: float = 1.0,
) -> Step:
    """Forward, backward, clipping and the optimiser's step on one batch.

    ``share`` is the part of the whole batch that this one of the ``ranks`` has.
    """
    task, training = run.task, run.training
    with autocast(training):
        result = network(batch.input.to(training.device), carry if batch.continues else None, batch.lengths)
    loss = task.loss(wide(result.output), batch.target.to(training.device))
    objective = loss if result.penalty is None else loss + result.penalty
    optimizer.zero_grad()
    objective.backward()
    loss = ranks.average(parameters, loss, share)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = _norm(gradients)

    # The one place where the loop waits for the device.
    both = torch.stack([loss.detach(), norm]).tolist()
    if both[1] == math.inf:
        norm = _norm(gradients, torch.float64)
        both[1] = float(norm)
    made = Step(both[0], both[1], result.carry)
    if made.finite:
        if training.clip is not None:
            factor = torch.clamp(training.clip / (norm + 1e-6), max=1.0)
            for gradient in gradients:
                gradient.mul_(factor)
        optimizer.step()
    return made


def _norm(gradients: list[Tensor], dtype: torch.dtype | None = None) -> Tensor:
    """As in torch's ``clip_grad_norm_``, but in a given dtype: the squares of a finite gradient may overflow float32,
    and torch would set it to zero."""
    parts = torch.stack([torch.linalg.vector_norm(part, dtype=dtype) for part in gradients])
    norm: Tensor = torch.linalg.vector_norm(parts)
    return norm
