"""The memory of a run: whether it fits, and what is kept of it between updates."""

from __future__ import annotations

import ctypes
import os

import torch

from gatedrnn.lab.training.run import Run

_BYTES = 4  # of a float32 number
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
# Parameters of glibc's mallopt, from its malloc.h, and the environment variables that set them.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


def keep_freed_memory() -> bool:
    """Let glibc keep the memory of freed tensors for the next update; returns whether it does.

    By default it returns that of large ones to the system and requests it again at each update, where the page faults
    can take a third of the time. For a process that only trains: it keeps the memory of its peak. Settings in the
    environment variables of glibc take precedence; other C libraries have no such setting.
    """
    libc = ctypes.CDLL(None)
    if any(name in os.environ for name in (*_SETTINGS, "GLIBC_TUNABLES")) or not hasattr(libc, "mallopt"):
        return False
    # No large block is mapped separately, and free memory at the end of the heap is never returned (-1: no threshold).
    return bool(libc.mallopt(_MMAP_MAX, 0) and libc.mallopt(_TRIM_THRESHOLD, -1))


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
