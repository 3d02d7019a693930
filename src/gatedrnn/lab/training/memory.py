"""Whether a run fits into the memory of this machine: from its sizes, and from an error."""

from __future__ import annotations

import os

import torch

from gatedrnn.lab.training.run import Run

_BYTES = 4  # of a float32 number
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def check_memory(run: Run) -> None:
    """Raise ValueError for sizes that cannot fit. It begins with the option's name.

    What is counted is the least that any engine needs, so that no run is refused that could be made. The options must
    have passed their own checks.
    """
    task, training = run.task, run.training
    options, weights, at_a_step = run.model.least_memory(task.input_size)
    if torch.device(training.device).type == "cpu":
        _check(options, 2 * weights, "a smaller model")  # and their gradients
    else:
        at_a_step = 0  # it is on another device
    rows = training.batch_size * task.steps * (task.input_size + at_a_step)
    _check(f"batch_size {training.batch_size} with sequences of {task.steps} steps", rows, "fewer or shorter sequences")
    size = training.evaluation_size or 0
    _check(
        f"evaluation_size {size} with sequences of {task.steps} steps",
        size * task.steps * task.input_size,
        "fewer or shorter sequences",
    )


def is_out_of_memory(wrong: BaseException) -> bool:
    """Whether memory could not be allocated. For the CPU, torch has no error class of its own for that."""
    if isinstance(wrong, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    ours = str(wrong).startswith("out of memory")  # of the CPU engine
    return isinstance(wrong, RuntimeError) and (ours or "DefaultCPUAllocator" in str(wrong))


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
