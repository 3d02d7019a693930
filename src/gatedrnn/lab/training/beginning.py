"""The initial network of a run, and the engine that runs it."""

from __future__ import annotations

import torch

from gatedrnn.lab.models import Network, Sizes
from gatedrnn.lab.training.evaluation import autocast
from gatedrnn.lab.training.memory import is_out_of_memory
from gatedrnn.lab.training.run import Run
from gatedrnn.layers import explain

# Batches have seeds of their own: with the seed of the weights they would be made of the same random numbers.
BATCH_SEEDS = 2**31


def new_network(run: Run) -> Network:
    """Drawn on the CPU, so that the weights are the same on every device.

    Raises ValueError if torch's default dtype is another than that of all runs: the key does not have it.
    """
    if torch.get_default_dtype() != torch.float32:
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        raise ValueError(
            f"training needs torch's default dtype float32, got {dtype}: call torch.set_default_dtype(torch.float32)"
        )
    torch.default_generator.manual_seed(run.training.seed)
    task = run.task
    network = run.model.build(Sizes(task.input_size, task.output_size, task.last, task.t_max))
    return network.to(run.training.device)


def engine_of(run: Run, network: Network) -> str:
    """The line that says which engine runs and why; ValueError if the one asked for cannot."""
    steps, rows = run.task.steps, run.training.batch_size
    lines = []
    for layer in network.layers.values():
        x = torch.zeros((), device=run.training.device).expand(steps, rows, layer.input_size)  # takes no memory
        try:
            with autocast(run.training):
                lines.append(explain(layer, x).splitlines()[0])
        except RuntimeError as wrong:
            if is_out_of_memory(wrong):
                raise
            raise ValueError(f"engine must be one that can run this, got {layer.engine!r}: {wrong}") from None
    return "; ".join(dict.fromkeys(lines))
