"""Progress of a long job: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[int, int, str], None]


class _PipeConsole(Console):
    def on_broken_pipe(self) -> None:
        """rich would end the program here, with code 1 and without a checkpoint of a run."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console_of(stream: Literal["stdout", "stderr"]) -> Console:
    """rich treats FORCE_COLOR as a terminal, and would draw its bars into a file."""
    return _PipeConsole(stderr=stream == "stderr", force_terminal=getattr(sys, stream).isatty())


def draws_bars(console: Console) -> bool:
    """Whether it is a terminal on which a line can be drawn again."""
    return console.is_terminal and not console.is_dumb_terminal


def print_line(console: Console, text: str) -> None:
    """The text as it is, in one line."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    """A function report(done, total, what) for the job inside the ``with``. Writes to stderr."""
    console = console or console_of("stderr")
    if not draws_bars(console):
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
        print_line(console, f"{done:3d}/{total} {elapsed:5.1f} s  {what}")

    return report
