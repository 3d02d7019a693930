"""Progress of a training run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gatedrnn.cli.progress import console_of, draws_bars, print_line
from gatedrnn.lab.training import Progress as ProgressFunction
from gatedrnn.lab.training import Run, Status


@contextmanager
def shown(run: Run, console: Console | None = None) -> Iterator[ProgressFunction]:
    """A progress function for the training inside the ``with``. Writes to stderr."""
    console = console or console_of("stderr")
    metric = run.task.metric
    if not draws_bars(console):

        def say(status: Status) -> None:
            if status.note:
                print_line(console, status.note)
            elif status.evaluated:
                print_line(console, f"update {status.update}/{status.updates}  {_numbers(status, metric)}")

        yield say
        return
    columns = (
        TextColumn("update"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def draw(status: Status) -> None:
            if status.note:
                print_line(bar.console, status.note)
            bar.update(task, completed=status.update, total=status.updates, description=_numbers(status, metric))

        yield draw


def summary(record: dict[str, Any], out: Path) -> str:
    """How the run ended, in one line."""
    metric, final, count = record["metric"], record["final"], record["updates"]
    updates = f"{count} update" + ("" if count == 1 else "s")
    how = {
        "finished": f"finished after {updates}",
        "target_reached": f"target reached after {updates}",
        "stopped_early": f"stopped early after {updates}",
        "budget_spent": f"time budget spent after {updates}",
        "diverged": f"diverged at update {record['diverged_at']}",
    }[record["outcome"]]
    told = _value(final, metric)
    if "test" in record:
        best, test = record["validation"], record["test"]
        at = f"update {best['update']}" if best["epoch"] is None else f"epoch {best['epoch']:.4g}"
        told = f"validation {_value(best, metric)} at {at}, test {_value(test, metric)}"
    return f"{how} in {record['seconds']:.1f} s; {told}; the record is in {out}"


def _value(measured: dict[str, Any], metric: str) -> str:
    """The metric with its value, which a record has as None if it is not finite."""
    return f"{metric} not finite" if measured[metric] is None else f"{metric} {measured[metric]:.4g}"


def _numbers(status: Status, metric: str) -> str:
    parts = []
    if status.epoch is not None:
        parts.append(f"epoch {status.epoch:.2f}")
    if status.loss is not None:
        parts.append(f"loss {status.loss:.4g}")
    if status.metrics and status.metrics[metric] is not None:
        parts.append(f"{metric} {status.metrics[metric]:.4g}")
    if status.updates_a_second is not None:
        parts.append(f"{status.updates_a_second:.3g} updates/s")
    if status.seconds_left is not None:
        parts.append(f"{timedelta(seconds=round(status.seconds_left))} left")
    return "  ".join(parts)
