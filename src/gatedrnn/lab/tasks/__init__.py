"""The tasks: what a model is trained to do. Each is one documented dataclass of options."""

from __future__ import annotations

from gatedrnn.lab.tasks.adding import Adding
from gatedrnn.lab.tasks.base import Task
from gatedrnn.lab.tasks.copy import Copy

#: The tasks by name.
TASKS: dict[str, type[Task]] = {"adding": Adding, "copy": Copy}

__all__ = ["TASKS", "Adding", "Copy", "Task"]
