"""Everything that a run needs to go on to the same bits: network, optimiser, generators, metrics and counts."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from gatedrnn.lab.models import Network, weights_bytes
from gatedrnn.lab.records import METRICS_FILE, append, finite, last_checkpoint, line, write, write_checkpoint
from gatedrnn.lab.training.optimizer import load_optimizer, make_optimizer, optimizer_tensors
from gatedrnn.lab.training.run import Run

# Batches have seeds of their own: with the seed of the weights they would be made of the same random numbers.
_BATCH_SEEDS = 2**31
_WEIGHTS, _STATE = "weights.safetensors", "state.safetensors"


@dataclass
class Counts:
    """The part of the state that JSON holds."""

    update: int = 0
    #: Of training alone, and of evaluating.
    seconds: float = 0.0
    seconds_evaluation: float = 0.0
    #: Sums over the updates since the last evaluation, for the means in the metrics.
    loss_sum: float = 0.0
    norm_sum: float = 0.0
    summed: int = 0
    #: How the run ended: finished, target_reached, budget_spent or diverged. None as long as it has not.
    outcome: str | None = None
    diverged_at: int | None = None
    resumed: int = 0
    notes: list[str] = field(default_factory=list)


class State:
    """A run in the making. ``save`` and ``restore`` are exact."""

    def __init__(self, run: Run, out: Path, network: Network) -> None:
        self.run, self.out, self.network = run, out, network
        self.parameters: list[nn.Parameter] = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(run.training, self.parameters)
        self.batches = torch.Generator().manual_seed(_BATCH_SEEDS + run.training.seed)
        self.counts = Counts()
        self.metrics: list[dict[str, Any]] = []

    def add_metrics(self, measured: dict[str, Any]) -> None:
        """One evaluation: kept, and written at once."""
        self.metrics.append(finite(measured))
        append(self.out / METRICS_FILE, line(measured))

    def save(self) -> None:
        """Write a checkpoint."""
        generators = {"batches": self.batches.get_state(), "torch": torch.get_rng_state()}
        metrics = "".join(map(line, self.metrics)).encode()
        files = {
            _WEIGHTS: weights_bytes(self.network, self.run.model),
            _STATE: safetensors.torch.save({**generators, **optimizer_tensors(self.optimizer)}),
            METRICS_FILE: metrics,
        }
        counts = dataclasses.asdict(self.counts)
        note = {"key": self.run.key(), "metrics_bytes": len(metrics), "counts": counts}
        write_checkpoint(self.out, self.counts.update, note, files)

    def restore(self) -> list[str]:
        """Go back to the last checkpoint that is whole, or stay at the beginning; what is to be said about it."""
        checkpoint, notes = last_checkpoint(self.out, self.run.key())
        metrics = b""
        if checkpoint is not None:
            metrics = checkpoint.files[METRICS_FILE]
            self.network.load_state_dict(safetensors.torch.load(checkpoint.files[_WEIGHTS]))
            tensors: dict[str, Tensor] = safetensors.torch.load(checkpoint.files[_STATE])
            load_optimizer(self.optimizer, tensors)
            self.batches.set_state(tensors["batches"])
            torch.set_rng_state(tensors["torch"])
            self.counts = Counts(**checkpoint.note["counts"])
            self.metrics = [json.loads(text) for text in metrics.splitlines()]
        # What was evaluated after the checkpoint will be evaluated again.
        write(self.out / METRICS_FILE, metrics)
        self.counts.notes += notes
        self.counts.resumed += 1
        return [*notes, f"continuing from update {self.counts.update}"]
