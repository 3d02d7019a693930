"""How far a long job is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[int, int, str], None]


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    """A function report(done, total, what) for the job inside the ``with``. Writes to stderr."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield report


def _lines(console: Console) -> Report:
    begin = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        elapsed = time.monotonic() - begin
        console.print(f"{done:3d}/{total} {elapsed:5.1f} s  {what}", highlight=False, markup=False, soft_wrap=True)

    return report
