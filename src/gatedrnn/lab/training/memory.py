"""Whether a run fits into the memory of this machine: what its sizes tell, and what an error says."""

from __future__ import annotations

import os

import torch

from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Task
from gatedrnn.lab.training.options import Training

_BYTES = 4  # of a float32 number
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def check_memory(task: Task, model: Model, training: Training) -> None:
    """Raise ValueError for sizes that cannot fit. It begins with the option's name.

    What is counted is the least that any engine needs, so that no run is refused that could be made. The options must
    have passed their own checks.
    """
    layer = model.layer(task.input_size, t_max=3.0, device="meta")
    weights = 2 * sum(parameter.numel() for parameter in layer.parameters())  # and their gradients
    at_a_step = task.input_size
    if torch.device(training.device).type == "cpu":
        at_a_step += model.num_layers * model.hidden_size  # the outputs, for the backward pass
        memory = "" if model.memory_size is None else f" and memory_size {model.memory_size}"
        _check(
            f"hidden_size {model.hidden_size} with num_layers {model.num_layers}{memory}", weights, "a smaller model"
        )
    for option in ("batch_size", "evaluation_size"):
        size = getattr(training, option)
        numbers = task.steps * size * (at_a_step if option == "batch_size" else task.input_size)
        _check(f"{option} {size} with sequences of {task.steps} steps", numbers, "fewer or shorter sequences")


def is_out_of_memory(wrong: BaseException) -> bool:
    """Whether the error says that memory could not be had. For the CPU, torch has no class of its own for that."""
    if isinstance(wrong, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(wrong, RuntimeError) and "DefaultCPUAllocator" in str(wrong)


def _check(what: str, numbers: int, instead: str) -> None:
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if numbers * _BYTES > there:
        raise ValueError(
            f"{what} needs {_readable(numbers * _BYTES)} of memory or more, this machine has {_readable(there)}: "
            f"choose {instead}"
        )


def _readable(size: int) -> str:
    power = (len(str(size)) - 1) // 3
    return f"{size / 1000**power:.3g} {_UNITS[power]}" if power < len(_UNITS) else f"1000 {_UNITS[-1]}"
