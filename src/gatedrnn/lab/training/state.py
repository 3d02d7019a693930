"""Everything that a run needs to continue to the same bits: network, optimiser, stream, carry, metrics and counts."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from gatedrnn.files import append, write
from gatedrnn.lab.models import Carry, Network, weights_bytes
from gatedrnn.lab.records import (
    METRICS_FILE,
    RECORD_FILE,
    Checkpoint,
    json_safe,
    line,
    move_aside,
    remove_checkpoint,
    write_checkpoint,
    write_json,
)
from gatedrnn.lab.tasks import Stream
from gatedrnn.lab.training.folder import Claim
from gatedrnn.lab.training.optimizer import (
    averaged,
    load_optimizer,
    make_averaging_optimizer,
    make_optimizer,
    optimizer_tensors,
)
from gatedrnn.lab.training.pace import Pace
from gatedrnn.lab.training.ranks import Ranks
from gatedrnn.lab.training.run import Run
from gatedrnn.lab.training.same_data import check_checkpoint, sizes_of
from gatedrnn.lab.training.schedule import averages

WEIGHTS_FILE, BEST_FILE, _STATE = "weights.safetensors", "best.safetensors", "state.safetensors"
#: The averages that are evaluated, where training continues with other weights.
AVERAGES_FILE = "averages.safetensors"
_CARRY = "carry."


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
    #: How the run ended: finished, target_reached, stopped_early, budget_spent or diverged. None as long as it has not.
    outcome: str | None = None
    diverged_at: int | None = None
    resumed: int = 0
    notes: list[str] = field(default_factory=list)


def _generator(rank: int) -> str:
    """The name of the generator state of a process."""
    return f"torch.{rank}" if rank else "torch"


class State:
    """A run in the making. ``save`` and ``restore`` are exact."""

    def __init__(self, run: Run, claim: Claim, network: Network, stream: Stream, pace: Pace, ranks: Ranks) -> None:
        self.run, self.claim, self.network, self.stream, self.pace = run, claim, network, stream, pace
        self.ranks = ranks
        self.parameters: list[nn.Parameter] = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(run.training, self.parameters)
        self.averaging = False
        self.counts = Counts()
        self.metrics: list[dict[str, Any]] = []
        #: Of the recurrent layers, where the next batch may continue this one.
        self.carry: Carry = None
        #: The weights of the best validation, as a file; kept for tasks with a test split.
        self.best: bytes | None = None

    @property
    def values(self) -> list[float | None]:
        """The metric in all evaluations so far."""
        return [measured[self.run.task.metric] for measured in self.metrics]

    def add_metrics(self, measured: dict[str, Any]) -> None:
        """One evaluation: kept, and written at once."""
        self.metrics.append(json_safe(measured))
        if self.claim.writes:
            self.claim.check()
            append(self.claim.out / METRICS_FILE, line(measured))

    def keep_best(self) -> None:
        """Keep the weights as they are now evaluated."""
        with averaged(self.optimizer):
            self.best = weights_bytes(self.network, self.run.model)

    def load_best(self) -> None:
        """Give the network the weights of the best validation."""
        assert self.best is not None
        self.network.load_state_dict(safetensors.torch.load(self.best))

    def choose_optimizer(self) -> None:
        """Average from now on if the evaluations so far require it."""
        if not self.averaging and averages(self.run.training, self.values, self.run.task.lower_is_better):
            self.optimizer, self.averaging = make_averaging_optimizer(self.run.training, self.parameters), True

    def save(self) -> None:
        """Write a checkpoint: of all processes, so that another number of them can continue too."""
        generators = self.ranks.gathered(torch.get_rng_state())
        carry = [self.ranks.joined_rows(part) for part in self.carry or ()]
        if not self.claim.writes:
            return
        metrics = "".join(map(line, self.metrics)).encode()
        tensors = {
            **self.stream.position(),
            **{_generator(rank): generator for rank, generator in enumerate(generators)},
            **{f"{_CARRY}{index}": part.cpu().contiguous() for index, part in enumerate(carry)},
            **optimizer_tensors(self.optimizer),
        }
        files = {
            WEIGHTS_FILE: weights_bytes(self.network, self.run.model),
            _STATE: safetensors.torch.save(tensors),
            METRICS_FILE: metrics,
        }
        if self.best is not None:
            files[BEST_FILE] = self.best
        if self.averaging:
            with averaged(self.optimizer):
                files[AVERAGES_FILE] = weights_bytes(self.network, self.run.model)
        counts = dataclasses.asdict(self.counts)
        note = {"key": self.run.key(), "metrics_bytes": len(metrics), "averaging": self.averaging, "counts": counts}
        if data := self.run.task.fingerprint():
            note["data"] = data
        if sizes := sizes_of(self.stream):
            note["sizes"] = sizes
        self.claim.check()
        write_checkpoint(self.claim.out, self.counts.update, note, files)

    def write_record(self, record: dict[str, Any]) -> None:
        """The last file of a run."""
        if self.claim.writes:
            self.claim.check()
            write_json(self.claim.out / RECORD_FILE, record)

    def restore(self) -> list[str]:
        """Go to the last checkpoint that is part of this run, or stay at the start.

        Returns what was found damaged, and which checkpoints are not part of it.
        """
        notes: list[str] = []
        part = [found for found in self.claim.checkpoints if self._on_the_way(found)]
        checkpoint = part[0] if part else None
        metrics = b""
        if checkpoint is not None:
            check_checkpoint(self.run.task, checkpoint, sizes_of(self.stream))  # each process has data of its own
            metrics = checkpoint.files[METRICS_FILE]
            self.network.load_state_dict(safetensors.torch.load(checkpoint.files[WEIGHTS_FILE]))
            if checkpoint.note.get("averaging"):
                self.optimizer, self.averaging = make_averaging_optimizer(self.run.training, self.parameters), True
            tensors: dict[str, Tensor] = safetensors.torch.load(checkpoint.files[_STATE])
            load_optimizer(self.optimizer, tensors)
            self.stream.seek({name: tensor for name, tensor in tensors.items() if name.startswith("batches")})
            if (own := _generator(self.ranks.rank)) in tensors:
                torch.set_rng_state(tensors[own])
            carried = sum(name.startswith(_CARRY) for name in tensors)
            carry = [self.ranks.own_rows(tensors[f"{_CARRY}{i}"]) for i in range(carried)]
            self.carry = tuple(part.to(self.run.training.device) for part in carry) or None
            self.best = checkpoint.files.get(BEST_FILE)
            self.counts = Counts(**checkpoint.note["counts"])
            notes += self._extended()
            self.metrics = [json.loads(text) for text in metrics.splitlines()]
        # Evaluations after the checkpoint are repeated.
        path = self.claim.out / METRICS_FILE
        self.counts.resumed += 1
        if not self.claim.writes:
            return notes
        for other in self.claim.checkpoints:
            if other not in part:  # its number may be above those of this run, which would be removed as the older ones
                self.claim.check()
                remove_checkpoint(self.claim.out, other.update)
                notes.append(
                    f"the shorter run ended at update {other.update}, between two evaluations of this one; its "
                    "checkpoint was removed"
                )
        if path.exists() and not path.read_bytes().startswith(metrics):
            notes.append(f"{METRICS_FILE} was damaged; moved aside to {move_aside(path).name} and written again")
        write(path, metrics)
        return notes

    def _extended(self) -> list[str]:
        """Go on where the end that the checkpoint has is no longer the end of the run; returns what to note of it."""
        counts, training = self.counts, self.run.training
        if counts.outcome == "finished" and counts.update < self.pace.updates:
            counts.outcome = None
        elif counts.outcome == "budget_spent" and not training.spends(counts.seconds + counts.seconds_evaluation):
            counts.outcome = None
            if counts.update % self.pace.evaluate_every:  # a run with the larger budget would not be evaluated here
                return [f"the smaller time budget was spent at update {counts.update}; the evaluation there is kept"]
        return []

    def _on_the_way(self, checkpoint: Checkpoint) -> bool:
        """Whether a run of this length passes this state: a shorter run was evaluated at its end, and may have ended
        by that evaluation."""
        if checkpoint.note["key"] == self.run.key():  # its own, not that of a shorter run
            return True
        update, counts = checkpoint.update, checkpoint.note["counts"]
        if counts["outcome"] in (None, "budget_spent") or counts["diverged_at"] == update + 1:  # by no such evaluation
            return True
        return update == self.pace.updates or update % self.pace.evaluate_every == 0
