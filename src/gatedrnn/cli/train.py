"""``gatedrnn train TASK``: one run with any option."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from gatedrnn.cli.failure import Failure, as_option
from gatedrnn.cli.training_progress import shown, summary
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import TASKS, Task
from gatedrnn.lab.training import Run, Training, train
from gatedrnn.lab.training.memory import check_memory, is_out_of_memory

_Task = TypeVar("_Task", bound=Task)


@dataclass(frozen=True)
class Job(Generic[_Task]):
    """The same command with the same --out resumes a run, or reports one that has ended."""

    out: Path
    """Folder of the run: its options, metrics, checkpoints and record; made if it does not exist."""
    task: _Task
    model: Model
    training: Training

    def run(self) -> None:
        run = Run(self.task, self.model, self.training)
        try:
            for options in (self.task, self.model, self.training):
                options.check()
            check_memory(self.task, self.model, self.training)
            with shown(run) as progress:
                record = train(run, self.out, progress)
        except ValueError as wrong:
            raise Failure(as_option(wrong, self.task, self.model, self.training)) from wrong
        except OSError as wrong:
            raise Failure(f"cannot write to {self.out}: {wrong}; run the same command again to resume") from wrong
        except (MemoryError, RuntimeError) as wrong:
            if not is_out_of_memory(wrong):
                raise
            raise Failure(
                "out of memory: choose a smaller --batch-size or --hidden-size or shorter sequences, and another --out",
                code=1,
            ) from wrong
        print(summary(record, self.out))


def _subcommand(name: str, task: type[Task]) -> Any:
    description = f"{(task.__doc__ or ' ').splitlines()[0]} {Job.__doc__ or ''}"
    return Annotated[Job[task], tyro.conf.subcommand(name, description=description)]  # type: ignore[valid-type]


# For each task its own Annotated type, and the union of them: tyro's form of subcommands.
_KINDS: list[Any] = [_subcommand(name, task) for name, task in TASKS.items()]
_JOBS: Any = functools.reduce(operator.or_, _KINDS)


@dataclass(frozen=True)
class Train:
    """Train one model on a task: gatedrnn train adding --out DIR. The same command resumes it."""

    job: tyro.conf.OmitSubcommandPrefixes[tyro.conf.OmitArgPrefixes[_JOBS]]

    def run(self) -> None:
        """Train, show the progress, and say where the record is."""
        self.job.run()
