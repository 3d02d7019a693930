"""One run: a task, a model and the training, as JSON and as a key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatedrnn.lab.fields import keyed, made, plain, with_plain_numbers
from gatedrnn.lab.models import MODELS, Model, ModelOptions
from gatedrnn.lab.records import RUN_KIND, SCHEMA, check_schema
from gatedrnn.lab.tasks import TASKS, Adding, Task
from gatedrnn.lab.training.names import check_names
from gatedrnn.lab.training.options import Training

_EVALUATION_SIZE = 1000  # of a task that draws its evaluation set


class UnknownTaskError(ValueError):
    """The options name a task that is not known here."""


@dataclass(frozen=True)
class Run:
    """What is trained, on what, and how."""

    task: Task = field(default_factory=Adding)
    model: ModelOptions = field(default_factory=Model)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        for part in ("task", "model", "training"):
            object.__setattr__(self, part, with_plain_numbers(getattr(self, part)))
        if self.task.endless and self.training.evaluation_size is None:
            training = dataclasses.replace(self.training, evaluation_size=_EVALUATION_SIZE)
            object.__setattr__(self, "training", training)

    def check(self) -> None:
        """Raise ValueError that begins with the option's name and says what is allowed."""
        self.task.check()
        self.model.check()
        self.training.check()
        check_names(self.task, [self.task.metric])
        self.options()  # as JSON, which must be able to hold them
        if self.task.tokens != self.model.tokens:
            fitting = [kind.__name__ for kind in MODELS.values() if kind.tokens == self.task.tokens]
            raise ValueError(
                f"the task {self.task.name} needs a model that reads {'words' if self.task.tokens else 'features'} "
                f"({', '.join(fitting)}), not {type(self.model).__name__}"
            )
        if self.model.needs_t_max and self.task.t_max <= 2:
            raise ValueError(f"forget_init chrono needs a task whose t_max is above 2, got {self.task.t_max:g}")
        if self.task.endless and self.training.epochs is not None:
            raise ValueError(
                f"epochs is for tasks with a training set; {self.task.name} draws fresh batches: give updates"
            )
        if not self.task.endless and self.training.evaluation_size is not None:
            raise ValueError(
                f"evaluation_size is for tasks that draw fresh batches; {self.task.name} has a validation set, "
                f"got {self.training.evaluation_size}"
            )

    def as_json(self) -> dict[str, Any]:
        """The content of options.json: the options, and what the run measures, for readers of an unfinished run."""
        return {"schema": SCHEMA, "kind": RUN_KIND, **self.options(), "key": self.key(), **self.task.measured()}

    def options(self) -> dict[str, dict[str, Any]]:
        """Every option of task, model and training, as JSON holds it."""
        return self._parts(plain)

    @staticmethod
    def from_json(options: dict[str, Any], like: Run | None = None, tasks: Mapping[str, type[Task]] = TASKS) -> Run:
        """The run that as_json wrote. Options that an older version did not have take their neutral values.

        ``like`` is a run whose task and model may be ones that are not registered; ``tasks`` are those that are known.
        """
        check_schema(options, RUN_KIND)
        task, model = dict(options["task"]), dict(options["model"])
        name, kind = task.pop("name"), model.pop("kind", Model.kind)
        if like is not None:
            tasks = {**tasks, like.task.name: type(like.task)}
        models = MODELS if like is None else {**MODELS, like.model.kind: type(like.model)}
        if name not in tasks:
            raise UnknownTaskError(f"unknown task {name!r}; known tasks: {', '.join(tasks)}")
        if kind not in models:
            raise ValueError(f"unknown model {kind!r}; known models: {', '.join(models)}")
        return Run(made(tasks[name], task), made(models[kind], model), made(Training, options["training"]))

    def key(self) -> str:
        """Digest of everything that determines the result: runs with one key give the same curve."""
        return hashlib.sha256(json.dumps(self._parts(keyed), sort_keys=True).encode()).hexdigest()[:32]

    def _parts(self, fields_of: Any) -> dict[str, dict[str, Any]]:
        kind = {} if self.model.kind == Model.kind else {"kind": self.model.kind}
        return {
            "task": {"name": self.task.name, **fields_of(self.task)},
            "model": {**kind, **fields_of(self.model)},
            "training": fields_of(self.training),
        }
