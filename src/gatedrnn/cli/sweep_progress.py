"""The progress of a sweep: a line for each run that ended, bars for those that run; without a terminal plain lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from gatedrnn.cli.progress import console_of, draws_bars, print_line
from gatedrnn.lab.experiments.sweep import RunState, Sweep

_SILENCE = 30.0  # seconds, the longest without a line where there are no bars
_WORDS = {
    "finished": "finished",
    "target_reached": "target reached",
    "stopped_early": "stopped early",
    "budget_spent": "time budget spent",
    "diverged": "diverged",
    "failed": "failed",
    "running": "running",
    "waiting": "waiting",
}


@contextmanager
def shown(sweep: Sweep, console: Console | None = None) -> Iterator[Callable[[RunState], None]]:
    """A function that shows the progress of the sweep inside the ``with``. Writes to stderr."""
    console = console or console_of("stderr")
    before = sum(run.before for run in sweep.runs)
    if before:
        print_line(console, f"{before} of {len(sweep.runs)} runs are already complete")
    for run in sweep.runs:
        if run.state == "failed":  # its folder is damaged
            print_line(console, _line(run))
    if draws_bars(console):
        with _bars(sweep, console) as changed:
            yield changed
    else:
        yield _lines(sweep, console)


def summary(sweep: Sweep) -> str:
    """How many runs there are in each state, in one line."""
    counts: dict[str, int] = {}
    for run in sweep.runs:
        counts[run.state] = counts.get(run.state, 0) + 1
    parts = [f"{counts[state]} {words}" for state, words in _WORDS.items() if state in counts]
    before = sum(run.before for run in sweep.runs)
    runs = f"{len(sweep.runs)} run" + ("" if len(sweep.runs) == 1 else "s")
    return f"{runs}: {', '.join(parts)}" + (f" ({before} already complete)" if before else "")


def _lines(sweep: Sweep, console: Console) -> Callable[[RunState], None]:
    said: dict[str, str] = {}
    noted: set[str] = set()
    last = time.monotonic()

    def changed(run: RunState) -> None:
        nonlocal last
        now = time.monotonic()
        if said.get(run.name) != run.state:
            line = _line(run)
        elif run.note is not None and run.note not in noted:
            noted.add(run.note)
            line = f"{run.name}: {run.note}"
        elif now - last > _SILENCE:
            line = f"{run.name}: update {run.update}/{run.updates or '?'}, {_news(run)}"
        else:
            return
        said[run.name], last = run.state, now
        print_line(console, f"{_count(sweep)}  {line}{_left(sweep)}")

    return changed


@contextmanager
def _bars(sweep: Sweep, console: Console) -> Iterator[Callable[[RunState], None]]:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[news]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}
        noted: dict[str, str] = {}
        ended = sum(run.state not in ("waiting", "running") for run in sweep.runs)
        whole = bars.add_task("runs", total=len(sweep.runs), completed=ended, news="")

        def changed(run: RunState) -> None:
            if run.state == "running":
                if run.name not in tasks:
                    tasks[run.name] = bars.add_task(run.name, total=None, news="")
                own = run.note is not None and noted.setdefault(run.note, run.name) == run.name
                news = run.note if own else _news(run)
                bars.update(tasks[run.name], completed=run.update, total=run.updates, news=news)
            else:
                if run.name in tasks:
                    bars.remove_task(tasks.pop(run.name))
                print_line(bars.console, _line(run))
                bars.advance(whole)
            bars.update(whole, news=_left(sweep).strip())

        yield changed


def _count(sweep: Sweep) -> str:
    total = len(sweep.runs)
    ended = sum(run.state not in ("waiting", "running") for run in sweep.runs)
    return f"{ended:{len(str(total))}d}/{total}"


def _line(run: RunState) -> str:
    if run.state == "running":
        threads = f"{run.job.threads} thread" + ("s" if run.job.threads > 1 else "")
        return f"{run.name}: started, {threads}"
    if run.state == "failed":
        return f"{run.name}: failed: {run.reason}" + (f" (see {run.job.log})" if run.job.log.exists() else "")
    at = f"at update {run.diverged_at}" if run.state == "diverged" else f"after {run.update} updates"
    seconds = "" if run.seconds is None else f", {run.seconds:.0f} s"
    return f"{run.name}: {_WORDS[run.state]} {at}, {run.run.task.metric} {_number(run.value)}{seconds}"


def _news(run: RunState) -> str:
    rate = "" if run.rate is None else f"  {run.rate:.3g} updates/s"
    return f"{run.run.task.metric} {_number(run.value)}{rate}"


def _left(sweep: Sweep) -> str:
    left = sweep.seconds_left
    return "" if not left else f"  (about {timedelta(seconds=round(left))} left)"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
