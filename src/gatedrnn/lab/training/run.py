"""One run: a task, a model and the training, as JSON and as a key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from gatedrnn.lab.models import Model
from gatedrnn.lab.records import RUN_KIND, SCHEMA, check_schema
from gatedrnn.lab.tasks import TASKS, Adding, Task
from gatedrnn.lab.training.options import Training

#: Options of training on which the result does not depend, up to the last bits of its sums.
_NOT_IN_KEY = ("threads", "checkpoint_seconds", "tensorboard", "budget_seconds")


@dataclass(frozen=True)
class Run:
    """What is trained, on what, and how."""

    task: Task = field(default_factory=Adding)
    model: Model = field(default_factory=Model)
    training: Training = field(default_factory=Training)

    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""
        self.task.check()
        self.model.check()
        self.training.check()
        if self.model.forget_init == "chrono" and self.task.t_max <= 2:
            raise ValueError(f"forget_init chrono needs a task whose t_max is above 2, got {self.task.t_max:g}")

    def as_json(self) -> dict[str, Any]:
        """The options as they stand in options.json."""
        return {"schema": SCHEMA, "kind": RUN_KIND, **self._options(), "key": self.key()}

    @staticmethod
    def from_json(options: dict[str, Any]) -> Run:
        """The run that as_json wrote. Options that an older version did not have take their defaults."""
        check_schema(options, RUN_KIND)
        task = dict(options["task"])
        name = task.pop("name")
        if name not in TASKS:
            raise ValueError(f"unknown task {name!r}; known tasks: {', '.join(TASKS)}")
        return Run(_made(TASKS[name], task), _made(Model, options["model"]), _made(Training, options["training"]))

    def key(self) -> str:
        """Digest of everything that determines the result: runs with one key give the same curve."""
        options = self._options()
        for name in _NOT_IN_KEY:
            del options["training"][name]
        return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:32]

    def _options(self) -> dict[str, Any]:
        task = {"name": self.task.name, **_plain(self.task)}
        return {"task": task, "model": _plain(self.model), "training": _plain(self.training)}


def _plain(options: Any) -> dict[str, Any]:
    """The fields as JSON holds them: a tuple is a list."""
    values = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _made(kind: Any, options: dict[str, Any]) -> Any:
    known = [f.name for f in dataclasses.fields(kind)]
    for name in options:
        if name not in known:
            raise ValueError(f"unknown option {name!r} of {kind.__name__}; known options: {', '.join(known)}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()})
