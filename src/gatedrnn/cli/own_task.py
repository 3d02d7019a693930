"""A custom task from a Python file: ``gatedrnn train my_task.py``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

from gatedrnn.cli.failure import Failure
from gatedrnn.lab.tasks import TASKS, Task


def is_file(argument: str) -> bool:
    """Whether the argument names a file, and not a task."""
    return argument.endswith(".py")


def load_task(path: Path) -> type[Task]:
    """The task that the file defines. The file is run, as an import would. Raises Failure with the reason."""
    if not path.is_file():
        raise Failure(f"{path} does not exist")
    name = f"gatedrnn_own_task_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as wrong:
        raise Failure(f"{path} cannot be imported: {type(wrong).__name__}: {wrong}", code=1) from wrong
    found = [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, Task) and not inspect.isabstract(kind) and kind.__module__ == name
    ]
    if len(found) != 1:
        classes = ", ".join(kind.__name__ for kind in found) or "none"
        raise Failure(
            f"{path} must define one task, a dataclass derived from gatedrnn.lab.tasks.Task; found: {classes}"
        )
    if getattr(found[0], "name", None) is None:
        raise Failure(f"{path}: the task {found[0].__name__} needs a name")
    if found[0].name in TASKS:
        raise Failure(f"{path}: the name {found[0].name!r} is taken by a built-in task; choose another name")
    return found[0]
