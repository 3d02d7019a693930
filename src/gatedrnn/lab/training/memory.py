"""Whether a run can fit into the memory of this machine at all."""

from __future__ import annotations

import os

from gatedrnn.lab.training.run import Run

_BYTES = 4  # of a float32


def check_memory(run: Run) -> None:
    """Raise ValueError for options that need more than all memory of this machine, before anything is made.

    A lower bound: the input and the evaluation set alone, not what the layers keep.
    """
    task, training = run.task, run.training
    for option, rows in (("batch_size", training.batch_size), ("evaluation_size", training.evaluation_size)):
        needed = _BYTES * task.steps * task.input_size * (rows or 0)
        if needed > _physical_memory():
            raise ValueError(
                f"{option} {rows} with {task.steps} steps needs {needed / 1e9:,.0f} GB for the input alone; "
                f"this machine has {_physical_memory() / 1e9:,.0f} GB"
            )


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
