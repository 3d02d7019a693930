"""A run that has spent its time budget is continued with a larger one."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatedrnn.lab.records import read_run
from gatedrnn.lab.training import RefusedError, Run, train

from .runs import changed, result, snapshot, stopped


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update and every evaluation takes a hundredth of a second."""
    hundredths = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(hundredths) / 100, monotonic=time.monotonic)
    monkeypatch.setattr("gatedrnn.lab.training.loop.time", clock)


SHORT = changed(budget_seconds=0.145)  # 13 updates and two evaluations, at updates 0 and 10
END = 13


def _said(run: Run, out: Path) -> tuple[list[str], dict[str, Any]]:
    said: list[str] = []
    record = train(run, out, lambda status: said.append(status.note) if status.note else None)
    return said, record


@pytest.mark.parametrize("budget", [60.0, None])
@pytest.mark.parametrize("updates", [30, 40])
def test_with_a_larger_budget_it_goes_on(budget: float | None, updates: int, tmp_path: Path) -> None:
    record = train(SHORT, tmp_path / "run")
    assert (record["outcome"], record["updates"]) == ("budget_spent", END)
    more = changed(budget_seconds=budget, updates=updates)
    said, record = _said(more, tmp_path / "run")
    note = f"the smaller time budget was spent at update {END}; the evaluation there is kept"
    assert said == [note, f"resuming from update {END}"]
    assert (record["outcome"], record["updates"], record["notes"]) == ("finished", updates, [note])
    assert read_run(tmp_path / "run").options["training"]["budget_seconds"] == budget
    train(changed(updates=updates), tmp_path / "whole")
    found, whole = result(tmp_path / "run"), result(tmp_path / "whole")
    assert (found["weights"], found["state"]) == (whole["weights"], whole["state"])
    assert [line["update"] for line in found["metrics"]] == [0, 10, END, *range(20, updates + 1, 10)]
    assert train(more, tmp_path / "run") == record


def test_killed_before_it_ends_again(tmp_path: Path) -> None:
    train(SHORT, tmp_path)
    more = changed(budget_seconds=60.0)
    stopped(tmp_path, 20, more)
    assert not (tmp_path / "record.json").exists()
    assert train(more, tmp_path)["outcome"] == "finished"


def test_a_run_that_ended_in_another_way_is_reported(tmp_path: Path) -> None:
    record = train(changed(budget_seconds=60.0), tmp_path)
    before = snapshot(tmp_path)
    assert train(changed(budget_seconds=90.0), tmp_path) == record
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (changed(budget_seconds=0.1), "contains another run: budget_seconds is 0.145, requested 0.1"),
        (changed(budget_seconds=60.0, lr=0.5), "contains another run: lr is 0.001, requested 0.5"),
        (changed(budget_seconds=0.145, updates=40), "contains a run that has taken 0.16 s and so has spent the time budget of "
         "0.145 s; choose a larger budget_seconds to continue it"),
        (changed(budget_seconds=0.146), "has spent the time budget of 0.146 s"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_refused(other: Run, message: str, tmp_path: Path) -> None:
    train(SHORT, tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(RefusedError, match=re.escape(message)):
        train(other, tmp_path)
    assert snapshot(tmp_path) == before
