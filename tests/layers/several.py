"""What the tests of several processes run in each of them; importable, so that a spawned process finds it."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import gatedrnn

STEPS, ROWS = 6, 8


class Tagger(nn.Module):
    """A layer and a head."""

    def __init__(self, engine: str) -> None:
        super().__init__()
        self.layer = gatedrnn.LSTM(3, 5, num_layers=2, forget_gate="fast", engine=engine, dtype=torch.float64)
        self.head = nn.Linear(5, 2, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.head(self.layer(x)[0])
        return output


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shape = (STEPS, ROWS)
    x = torch.randn(*shape, 3, generator=generator, dtype=torch.float64)
    return x, torch.randn(*shape, 2, generator=generator, dtype=torch.float64)


def trained(engine: str, kind: str = "", rank: int = 0, size: int = 1) -> dict[str, Tensor]:
    """The weights after three updates on this process's rows of the batch."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model: nn.Module = Tagger(engine)
    if kind == "ddp":
        model = DistributedDataParallel(model)
    elif kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (size,))
        fully_shard(model.layer, mesh=mesh)  # type: ignore[arg-type]
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    x, target = (whole.tensor_split(size, 1)[rank] for whole in batch())
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), target).backward()
        optimizer.step()
    whole = model.module if kind == "ddp" else model
    assert isinstance(whole, nn.Module)
    return {name: _whole(value) for name, value in whole.state_dict().items() if isinstance(value, Tensor)}


def _whole(value: Any) -> Tensor:
    tensor: Tensor = value.full_tensor() if hasattr(value, "full_tensor") else value
    return tensor.detach().clone()


def in_process(rank: int, size: int, kind: str, engine: str, place: str) -> None:
    """One of the processes; the first saves what all came to."""
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=size)
    try:
        found = trained(engine, kind, rank, size)
    finally:
        dist.destroy_process_group()
    if rank == 0:
        torch.save(found, f"{place}/weights.pt")


def answer(layer: gatedrnn.LSTM, x: Tensor, replies: Any) -> None:
    """Put the sum of the output, and the gradient that it leaves, into a queue."""
    torch.set_num_threads(1)
    layer.zero_grad()
    layer(x)[0].sum().backward()
    assert layer.weight_hh_l0.grad is not None
    replies.put((layer(x)[0].sum().item(), layer.weight_hh_l0.grad.sum().item()))
