"""Names that a custom task cannot give to what it measures: they are those of other fields of the records."""

from __future__ import annotations

from collections.abc import Iterable

from gatedrnn.lab.tasks import Task

_OF_METRICS = (
    *("update", "epoch", "seconds", "train_loss", "lr", "gradient_norm"),
    *("time_scales", "stability", "blocks"),
)
_OF_EVALUATE = ("checkpoint", "task", "split", "metric", "dropped", "against")
#: Fields of the lines in metrics.jsonl, and of the results of ``gatedrnn evaluate``.
RESERVED = (*_OF_METRICS, *_OF_EVALUATE)


def check_names(task: Task, names: Iterable[str]) -> None:
    """Raise ValueError for a measure of the task that has a reserved name."""
    for name in names:
        if name in RESERVED:
            raise ValueError(
                f"the task {task.name} cannot call a measure {name!r}, because records and results of evaluate have a "
                f"field of that name; choose another name than {', '.join(RESERVED)}"
            )
