"""Runs in processes of their own: the same bits, failures with their reason, ends that leave nothing behind."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import Job, Local, Message, local
from gatedrnn.lab.experiments.launchers.process import RunProcess
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import read_run
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training, train

TINY = Training(updates=6, evaluate_every=2, batch_size=2, evaluation_size=4, threads=1)
#: Would take minutes, and is never let so far. It saves itself all the time.
LONG = dataclasses.replace(TINY, updates=10**6, evaluate_every=50, checkpoint_seconds=0.0)


def declared(name: str, training: Training = TINY, **options: Any) -> DeclaredRun:
    run = Run(Adding(4), Model(hidden_size=4), dataclasses.replace(training, **options))
    return DeclaredRun(name, run.training.seed, run, f"adding/{name}/seed0")


def without_clock(folder: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name != "seconds"} for line in read_run(folder).metrics]


def started(item: DeclaredRun, out: Path) -> tuple[RunProcess, queue.Queue[Message]]:
    (out / item.folder).parent.mkdir(parents=True, exist_ok=True)
    messages: queue.Queue[Message] = queue.Queue()
    return RunProcess(Job(item.folder, item.run, out / item.folder), messages.put), messages


def test_runs_in_processes_give_the_bits_of_a_run_here(tmp_path: Path) -> None:
    items = [declared("one"), declared("diverging", lr=1e20, clip=None)]
    pool = Sweep(items, tmp_path, Local(2, cores=2))
    pool.go(lambda run: None)
    assert [run.state for run in pool.runs] == ["finished", "diverged"]
    train(items[0].run, tmp_path / "here")
    assert without_clock(tmp_path / items[0].folder) == without_clock(tmp_path / "here")
    assert read_run(tmp_path / items[0].folder).options["training"]["threads"] == 1
    assert pool.runs[0].update == 6
    assert pool.runs[0].value == without_clock(tmp_path / "here")[-1]["mse"]
    assert not pool.runs[0].job.log.exists()  # there was nothing to say


def test_a_killed_run_is_reported_and_goes_on_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[RunProcess] = []

    class Noted(RunProcess):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(local, "RunProcess", Noted)
    pool = Sweep([declared("long", LONG), declared("short")], tmp_path, Local(1, cores=1))

    def kill(run: RunState) -> None:
        if run.name.startswith("adding/long") and run.state == "running" and run.update > 0:
            os.kill(made[0]._process.pid, signal.SIGKILL)

    pool.go(kill)
    assert [run.state for run in pool.runs] == ["failed", "finished"]
    assert pool.runs[0].reason == (
        "its process was killed by signal 9 (SIGKILL), which the system sends when memory runs out"
    )
    begun = json.loads((tmp_path / "adding/long/seed0/options.json").read_text())
    assert begun["training"]["threads"] == 1
    again = Sweep([declared("long", LONG), declared("short")], tmp_path, Local(1, cores=1))
    assert [run.state for run in again.runs] == ["waiting", "finished"]


@pytest.mark.slow  # Ctrl-C on the command line does the same
def test_stopping_ends_the_process_at_once_and_the_run_can_go_on(tmp_path: Path) -> None:
    item = declared("long", LONG)
    process, messages = started(item, tmp_path)
    while (messages.get(timeout=60).update or 0) == 0:
        pass
    begin = time.monotonic()
    process.stop()
    assert time.monotonic() - begin < 5
    with open(tmp_path / item.folder / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody trains there any more
    assert not (tmp_path / item.folder / "record.json").exists()
    assert list(tmp_path.rglob("*.log")) == []


def test_a_process_ends_with_its_sweep(tmp_path: Path) -> None:
    """Also one that was killed and could not say goodbye: the end of the standard input tells."""
    item = declared("long", LONG)
    job = Job("long", item.run, tmp_path / "run").as_json() + "\n0\n"
    command = [sys.executable, "-m", "gatedrnn.lab.experiments.launchers.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write(job.encode())
        worker.stdin.flush()
        assert json.loads(worker.stdout.readline())["update"] == 0
        worker.stdin.close()
        assert worker.wait(30) == 1


def test_a_run_that_cannot_begin_says_why(tmp_path: Path) -> None:
    item = declared("run")
    (tmp_path / item.folder).mkdir(parents=True)
    (tmp_path / item.folder / "mine.txt").write_text("mine")
    process, messages = started(item, tmp_path)
    message = messages.get(timeout=60)
    process.wait()
    assert message.ended and "is not empty and contains no run" in str(message.failed)
    assert [path.name for path in (tmp_path / item.folder).iterdir()] == ["mine.txt"]


def test_a_process_that_dies_at_once_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Dead(subprocess.Popen[bytes]):  # before it can be told what to do
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.wait()

    monkeypatch.setattr(subprocess, "Popen", Dead)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    process, messages = started(declared("run"), tmp_path)
    assert messages.get(timeout=60).failed == "its process ended with code 1"
    process.wait()
