"""Several processes that train one run together, as torchrun starts them: each takes its rows of every batch."""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gatedrnn.lab.records import Checkpoint
from gatedrnn.lab.tasks import Batch
from gatedrnn.lab.training.folder import Claim, claimed
from gatedrnn.lab.training.refused import RefusedError
from gatedrnn.lab.training.run import Run


def rank_here() -> int:
    """The place of this process among those that torchrun started; 0 without torchrun."""
    return int(os.environ["RANK"]) if _together() else 0


def _together() -> bool:
    """Whether torchrun started this process. Some builds of torch have no distributed part."""
    return dist.is_available() and dist.is_torchelastic_launched()


class Ranks:
    """This process among those that train a run. With one process, everything here does nothing.

    What is summed over the processes is one buffer, whose layout never changes: so the order of the sums is fixed, and
    a run continues to the bit with the same number of processes.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def writes(self) -> bool:
        """Whether this is the one process that writes."""
        return self.rank == 0

    def first(self, function: Callable[[], Any]) -> Any:
        """The result of the function in the first process, a JSON value, in all processes; likewise an error."""
        if self.size == 1:
            return function()
        found: dict[str, Any] = {}
        if self.writes:
            try:
                found = {"value": function()}
            except (ValueError, OSError) as wrong:
                self._tell(json.dumps({"wrong": str(wrong)}).encode())
                raise
        found = json.loads(self._tell(json.dumps(found).encode()))
        if "wrong" in found:
            raise RefusedError(found["wrong"])
        return found["value"]

    def files(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Those of the first process, in all of them."""
        sizes = self.first(lambda: {name: len(content) for name, content in files.items()})
        if self.size == 1:
            return dict(files)
        content, found, begin = self._tell(b"".join(files.values())), {}, 0
        for name, size in sizes.items():
            found[name], begin = content[begin : begin + size], begin + size
        return found

    def part(self, batch: Batch) -> tuple[Batch, float]:
        """The rows of this process, and their share of the batch.

        A process for which no row is left takes the first one, with a share of 0: so all do the same steps.
        """
        if self.size == 1:
            return batch, 1.0
        rows = batch.input.shape[1]
        own = torch.arange(rows).tensor_split(self.size)[self.rank]
        begin, end = (int(own[0]), int(own[-1]) + 1) if len(own) else (0, 1)
        part = dataclasses.replace(
            batch,
            input=batch.input[:, begin:end].contiguous(),
            target=batch.target[:, begin:end].contiguous(),
            lengths=None if batch.lengths is None else batch.lengths[begin:end],
        )
        return part, len(own) / rows

    @torch.no_grad()
    def average(self, parameters: Sequence[nn.Parameter], loss: Tensor, share: float) -> Tensor:
        """The loss of the whole batch; the gradients become those of it too."""
        if self.size == 1:
            return loss
        parts = [loss.detach(), *(p.grad for p in parameters if p.grad is not None)]
        buffer = torch.cat([part.flatten() for part in parts]).mul_(share)
        dist.all_reduce(buffer)
        for part, summed in zip(parts, buffer.split([part.numel() for part in parts]), strict=True):
            part.copy_(summed.view_as(part))
        return parts[0]

    def sums(self, values: Mapping[str, float], share: float = 1.0) -> dict[str, float]:
        """Summed over the processes."""
        if self.size == 1:
            return dict(values)
        summed = torch.tensor([share * value for value in values.values()], dtype=torch.float64)
        dist.all_reduce(summed)
        return dict(zip(values, summed.tolist(), strict=True))

    def most(self, *values: float) -> list[float]:
        """The largest of each over the processes, so that all processes take the same decisions."""
        if self.size == 1:
            return [*values]
        largest = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        found: list[float] = largest.tolist()
        return found

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """That of each process; all have the same shape."""
        if self.size == 1:
            return [tensor]
        found = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(found, tensor.contiguous())
        return found

    def joined_rows(self, tensor: Tensor) -> Tensor:
        """The second dimension, which is split as that of a batch, put together again."""
        if self.size == 1:
            return tensor
        counts = [int(count) for count in self.gathered(torch.tensor(tensor.shape[1]))]
        padded = tensor.new_zeros(tensor.shape[0], max(counts), *tensor.shape[2:])
        padded[:, : tensor.shape[1]] = tensor
        return torch.cat([part[:, :count] for part, count in zip(self.gathered(padded), counts, strict=True)], 1)

    def own_rows(self, tensor: Tensor) -> Tensor:
        """The reverse of :meth:`joined_rows`."""
        return tensor.tensor_split(self.size, 1)[self.rank].contiguous()

    def seed_own_generator(self, seed: int) -> None:
        """Each process has its own random numbers, for dropout; the first has those of a run with one process."""
        if not self.writes:
            generator = torch.Generator().manual_seed(seed)
            seeds = torch.randint(2**31, (self.size,), generator=generator)
            torch.default_generator.manual_seed(int(seeds[self.rank]))

    def check_same(self, network: nn.Module) -> None:
        """Raise RuntimeError if the processes have different weights, which different processors could cause."""
        if self.size == 1:
            return
        digest = 0
        for parameter in network.parameters():
            values = parameter.detach().cpu().contiguous().flatten()
            digest = zlib.crc32(values.view(torch.uint8).numpy().tobytes(), digest)
        found = [int(one) for one in self.gathered(torch.tensor(digest))]
        if len(set(found)) > 1:
            other = next(rank for rank, one in enumerate(found) if one != found[0])
            raise RuntimeError(f"process {other} has different weights than process 0: use machines of the same kind")

    def _tell(self, content: bytes) -> bytes:
        """The bytes of the first process, in all of them."""
        size = torch.tensor(len(content))
        dist.broadcast(size, 0)
        buffer = torch.empty(int(size), dtype=torch.uint8)
        if self.writes and content:
            buffer.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        dist.broadcast(buffer, 0)
        return buffer.numpy().tobytes()


@contextmanager
def joined(run: Run) -> Iterator[Ranks]:
    """The processes that torchrun started, or this one alone; inside the ``with`` they can talk.

    Raises ValueError for what they cannot train.
    """
    training, together = run.training, _together()
    size = int(os.environ["WORLD_SIZE"]) if together else 1
    if training.processes not in (None, size):
        how = "torchrun started" if together else "runs without torchrun"
        raise ValueError(f"processes must be {size}, which {how}, got {training.processes}")
    if not together:
        yield Ranks()
        return
    if torch.device(training.device).type != "cpu":
        raise ValueError(f"device must be cpu under torchrun, got {training.device!r}")
    if training.batch_size < size:
        raise ValueError(f"batch_size must be at least the {size} processes, got {training.batch_size}")
    own = not dist.is_initialized()
    if own:
        store, rank, size = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
        # The agent keeps its store when it starts the workers again: addresses of dead ones must not be found there.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"attempt {attempt}", store)  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    try:
        yield Ranks(dist.get_rank(), size)
    finally:
        if own:
            dist.destroy_process_group()


@contextmanager
def claimed_together(
    ranks: Ranks, run: Run, out: Path, declared: Mapping[str, Any] | None, sizes: Mapping[str, int]
) -> Iterator[tuple[Run, Claim]]:
    """The folder is the first process's; the others get what it found there, and write nothing."""
    with ExitStack() as stack:
        claim = Claim(out, None)

        def found() -> dict[str, Any]:
            nonlocal run, claim
            run, claim = stack.enter_context(claimed(run, out, ranks.size, declared, sizes))
            checkpoints = [{"update": one.update, "note": one.note} for one in claim.checkpoints]
            return {"threads": run.training.threads, "begun": claim.begun, "checkpoints": checkpoints}

        told = ranks.first(found)
        files = ranks.files(
            {f"{place}/{name}": file for place, one in enumerate(claim.checkpoints) for name, file in one.files.items()}
        )
        if not ranks.writes:
            options = {"threads": told["threads"], "processes": ranks.size}
            run = dataclasses.replace(run, training=dataclasses.replace(run.training, **options))
            claim.begun = told["begun"]
            for place, one in enumerate(told["checkpoints"]):
                own = {name.partition("/")[2]: file for name, file in files.items() if name.startswith(f"{place}/")}
                claim.checkpoints.append(Checkpoint(one["update"], one["note"], own))
        yield run, claim
