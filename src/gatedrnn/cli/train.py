"""``gatedrnn train TASK``: one run with any option."""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast

import tyro

from gatedrnn.cli.failure import Failure, as_option, code_of, is_of_disk
from gatedrnn.cli.own_task import is_fault_in_task
from gatedrnn.cli.training_progress import shown, summary
from gatedrnn.lab.data import DataError
from gatedrnn.lab.models import LanguageModel, Model, ModelOptions
from gatedrnn.lab.tasks import Task
from gatedrnn.lab.training import Run, Training, train
from gatedrnn.lab.training.memory import is_out_of_memory, keep_freed_memory
from gatedrnn.lab.training.progress import ignore
from gatedrnn.lab.training.ranks import rank_here

_Task = TypeVar("_Task", bound=Task)
_Model = TypeVar("_Model", bound=ModelOptions)


@dataclass(frozen=True)
class Job(Generic[_Task, _Model]):
    """The options of a run and its folder."""

    out: Path
    """Folder of the run: its options, metrics, checkpoints and record; created if it does not exist. Run the same
    command with the same folder to resume the run, or to print the result of a finished one."""
    task: _Task
    model: _Model
    training: Training

    def run(self) -> None:
        if rank_here() == 0:
            return self._run()
        try:
            self._run()
        except Failure as failure:
            # Errors in options and folder are the same in all processes of torchrun: only the first one reports them.
            if isinstance(failure.__cause__, DataError) or not isinstance(failure.__cause__, ValueError):
                raise
            raise SystemExit(failure.code) from None
        return None

    def _run(self) -> None:
        run = Run(self.task, self.model, self.training)
        first = rank_here() == 0
        keep_freed_memory()
        try:
            run.check()
            with shown(run) if first else nullcontext(ignore) as progress:
                record = train(run, self.out, progress)
        except KeyboardInterrupt:
            if first:
                print("stopped; run the same command to resume", file=sys.stderr)
            raise
        except ValueError as wrong:
            if is_fault_in_task(wrong):
                raise
            text = as_option(wrong, self.task, self.model, self.training)
            raise Failure(text, several_lines=isinstance(wrong, DataError)) from wrong
        except OSError as wrong:
            if not _is_of_writing(wrong, self.out):
                raise Failure(_unopened(wrong), code=1) from wrong
            advice = "" if isinstance(wrong, PermissionError) else "; run the same command again to resume"
            text = f"cannot write to {self.out}: {wrong}{advice}"
            raise Failure(text, code=code_of(wrong)) from wrong
        except (MemoryError, RuntimeError) as wrong:
            if not is_out_of_memory(wrong):
                raise
            raise Failure(
                "out of memory: choose a smaller --batch-size or --hidden-size or shorter sequences, and another --out",
                code=1,
            ) from wrong
        if first:
            print(summary(record, self.out))


def _is_of_writing(wrong: OSError, out: Path) -> bool:
    """Whether the folder of the run could not be written to; a custom task opens other files."""
    if is_of_disk(wrong):
        return True
    if wrong.filename is None:
        return False
    place, folder = (Path(os.path.abspath(os.fsdecode(path))) for path in (wrong.filename, out))
    return folder in (place, *place.parents) or place in folder.parents


def _unopened(wrong: OSError) -> str:
    return str(wrong) if wrong.filename is None else f"cannot open {os.fsdecode(wrong.filename)}: {wrong.strerror}"


def check_option_names(task: type[Task], path: str) -> None:
    """Raise Failure if a field of the custom task has the name of another option of the command."""
    others = [kind for kind in task_options(task) if kind is not task]
    taken = {field.name for kind in others for field in dataclasses.fields(kind)}
    for field in dataclasses.fields(cast(Any, task)):
        if field.name in taken:
            option = f"--{field.name.replace('_', '-')}"
            raise Failure(f"{path}: the field {field.name!r} is taken by the option {option}; choose another name")


def task_options(task: type[Task]) -> tuple[type[Any], ...]:
    """The dataclasses whose fields are the options of ``gatedrnn train TASK``."""
    return Job, task, _model(task), Training


def _model(task: type[Task]) -> type[ModelOptions]:
    return LanguageModel if task.tokens else Model


def _subcommand(name: str, task: type[Task]) -> Any:
    job: Any = Job
    kind = job[task, _model(task)]
    return Annotated[kind, tyro.conf.subcommand(name, description=(task.__doc__ or " ").splitlines()[0])]


def train_verb(tasks: Mapping[str, type[Task]]) -> type[Any]:
    """The verb for these tasks. For each its own Annotated type, and the union of them: tyro's form of subcommands."""
    kinds: list[Any] = [_subcommand(name, task) for name, task in tasks.items()]
    jobs: Any = functools.reduce(operator.or_, kinds)
    short, plain = cast(Any, tyro.conf.OmitSubcommandPrefixes), cast(Any, tyro.conf.OmitArgPrefixes)
    about = """Train one model on a task: gatedrnn train adding --out DIR. Run the same command to resume.

    A custom task is a Python file: gatedrnn train my_task.py --out DIR.
    """
    namespace = {"__doc__": about, "run": lambda self: self.job.run()}
    return dataclasses.make_dataclass("Train", [("job", short[plain[jobs]])], frozen=True, namespace=namespace)
