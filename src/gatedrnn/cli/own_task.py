"""A custom task from a Python file: ``gatedrnn train my_task.py``."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path

from gatedrnn.cli.failure import Failure
from gatedrnn.lab.data import DataError
from gatedrnn.lab.tasks import TASKS, Task
from gatedrnn.lab.training import Run

_MODULE = "gatedrnn_own_task_"
_NEEDED = {"name": (str, "a string"), "metric": (str, "a string"), "lower_is_better": (bool, "True or False")}


def is_file(argument: str) -> bool:
    """Whether the argument names a file, and not a task."""
    return argument.endswith(".py")


def load_task(path: Path) -> type[Task]:
    """The task that the file defines. The file is run, as an import would. Raises Failure with the reason."""
    if not path.is_file():
        raise Failure(f"{path} does not exist")
    name = f"{_MODULE}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as wrong:
        raise Failure(f"{path} cannot be imported: {type(wrong).__name__}: {wrong}", code=1) from wrong
    kinds = [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, Task) and kind.__module__ == name
    ]
    found = [kind for kind in kinds if not inspect.isabstract(kind)]
    if len(kinds) == 1 and not found:
        missing = ", ".join(sorted(kinds[0].__abstractmethods__))
        raise Failure(f"{path}: {kinds[0].__name__} must define {missing}")
    if len(found) != 1:
        classes = ", ".join(kind.__name__ for kind in found) or "none"
        raise Failure(
            f"{path} must define one task, a dataclass derived from gatedrnn.lab.tasks.Task; found: {classes}"
        )
    (task,) = found
    if not dataclasses.is_dataclass(task):
        raise Failure(f"{path}: the task {task.__name__} must be a dataclass; write @dataclass(frozen=True) before it")
    for attribute, (kind, words) in _NEEDED.items():
        value = getattr(task, attribute, None)
        if not isinstance(value, kind):
            got = "none" if value is None else repr(value)
            raise Failure(f"{path}: {task.__name__}.{attribute} must be {words}, got {got}")
    if task.name in TASKS:
        raise Failure(f"{path}: the name {task.name!r} is taken by a built-in task; choose another name")
    return task


def is_fault_in_task(wrong: BaseException) -> bool:
    """Whether it is an error in the code of a custom task, whose traceback its author needs.

    What its check of the options raises is not, nor an error of the data that it opens with this package.
    """
    frames = [frame for frame, _ in traceback.walk_tb(wrong.__traceback__)]
    own = any(frame.f_globals.get("__name__", "").startswith(_MODULE) for frame in frames)
    checked = any(frame.f_code is Run.check.__code__ for frame in frames)
    return own and not checked and not isinstance(wrong, DataError)
