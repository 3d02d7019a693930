"""The sweep: order, cores, what is skipped, refused, isolated. Its processes are replaced here; see test_process.py."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import DeclaredRun, sweep
from gatedrnn.lab.experiments.launchers import Job, Local, Message, local
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import write_json
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import RefusedError, Run, Training, train

TINY = Training(updates=2, evaluate_every=1, batch_size=2, evaluation_size=4)


def declared(name: str, model: Model | None = None, **training: Any) -> DeclaredRun:
    run = Run(Adding(4), model or Model(hidden_size=4), dataclasses.replace(TINY, **training))
    return DeclaredRun(name, run.training.seed, run, f"adding/{name}/seed0")


class Processes:
    """Stand in for RunProcess: every run ends after a moment, as its name says, and what ran beside it is noted."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.beside: list[int] = []  # threads in use whenever a run begins
        self.running: dict[str, int] = {}
        self.stopped: list[str] = []

    def __call__(self, job: Job, send: Callable[[Message], None]) -> Processes._One:
        name = job.folder.parent.name
        self.order.append(name)
        self.running[name] = job.threads
        self.beside.append(sum(self.running.values()))
        return self._One(self, name, job.run, send)

    class _One:
        def __init__(self, all: Processes, name: str, run: Run, send: Callable[[Message], None]) -> None:
            self.all, self.name, self.run, self.send = all, name, run, send
            threading.Thread(target=self.go, daemon=True).start()

        def go(self) -> None:
            updates = self.run.training.updates
            self.send(Message(update=0, value=1.0))
            if self.name.startswith("endless"):
                return
            time.sleep(0.02)
            self.send(Message(update=updates, value=0.5, rate=9.0))
            if self.name.startswith("bad"):
                self.send(Message(failed="it broke"))
                return
            outcome = "diverged" if self.name.startswith("diverging") else "finished"
            ended = {"outcome": outcome, "updates": updates, "diverged_at": 1, "seconds": 2.0}
            self.send(Message(record={**ended, "metric": "mse", "final": {"mse": 0.25}}))

        def wait(self) -> None:
            del self.all.running[self.name]

        def stop(self) -> None:
            self.all.stopped.append(self.name)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    made = Processes()
    monkeypatch.setattr(local, "RunProcess", made)
    return made


def ignore(run: RunState) -> None:
    pass


def test_the_longest_runs_come_first(processes: Processes, tmp_path: Path) -> None:
    runs = [
        declared("short"),
        declared("long", updates=50),
        declared("nru", Model(cell="nru", hidden_size=4, memory_size=4, heads=1)),
        declared("refine", Model(hidden_size=4, forget_gate="refine")),
    ]
    Sweep(runs, tmp_path, Local(1, cores=2)).go(ignore)
    assert processes.order == ["long", "nru", "refine", "short"]


@pytest.mark.parametrize(("jobs", "cores", "threads"), [(1, 1, 1), (1, 4, 4), (2, 4, 2), (3, 4, 1), (4, 4, 1)])
def test_cores_are_shared_and_not_oversubscribed(
    jobs: int, cores: int, threads: int, processes: Processes, tmp_path: Path
) -> None:
    pool = Sweep([declared(f"run{i}") for i in range(7)], tmp_path, Local(jobs, cores=cores))
    assert {run.job.threads for run in pool.runs} == {threads}
    pool.go(ignore)
    assert max(processes.beside) == jobs * threads <= cores
    assert [run.state for run in pool.runs] == ["finished"] * 7
    assert processes.running == {} and processes.stopped == []


def begin(item: DeclaredRun, out: Path, threads: int) -> None:
    """As an interrupted run leaves its folder: begun with this number of threads, and without a record."""
    run = dataclasses.replace(item.run, training=dataclasses.replace(item.run.training, threads=threads))
    train(run, out / item.folder)
    (out / item.folder / "record.json").unlink()


def test_a_begun_run_keeps_its_threads_and_has_the_cores_for_itself(processes: Processes, tmp_path: Path) -> None:
    runs = [declared(f"run{i}") for i in range(4)]
    begin(runs[1], tmp_path, threads=2)
    pool = Sweep(runs, tmp_path, Local(2, cores=2))
    assert [run.job.threads for run in pool.runs] == [1, 2, 1, 1]
    pool.go(ignore)
    assert max(processes.beside) == 2
    assert [run.state for run in pool.runs] == ["finished"] * 4


def test_complete_runs_are_skipped(processes: Processes, tmp_path: Path) -> None:
    runs = [declared("old"), declared("new")]
    record = train(runs[0].run, tmp_path / runs[0].folder)
    pool = Sweep(runs, tmp_path, Local(1, cores=1))
    assert [(run.state, run.before) for run in pool.runs] == [("finished", True), ("waiting", False)]
    assert pool.runs[0].value == record["final"]["mse"]
    pool.go(ignore)
    assert processes.order == ["new"]


@pytest.mark.parametrize("damage", [{"final": None}, {"outcome": None}])
def test_a_run_with_a_damaged_record_is_made_again(damage: Any, processes: Processes, tmp_path: Path) -> None:
    runs = [declared("old"), declared("new")]
    path = tmp_path / runs[0].folder / "record.json"
    write_json(path, {**train(runs[0].run, path.parent), **damage})
    pool = Sweep(runs, tmp_path, Local(1, cores=1))
    assert [(run.state, run.before) for run in pool.runs] == [("waiting", False), ("waiting", False)]
    pool.go(ignore)
    assert sorted(processes.order) == ["new", "old"]


def test_failures_are_isolated_and_divergence_is_none(processes: Processes, tmp_path: Path) -> None:
    pool = Sweep([declared(name) for name in ("bad", "diverging", "good")], tmp_path, Local(1, cores=1))
    seen: list[tuple[str, str]] = []
    pool.go(lambda run: seen.append((run.name, run.state)))
    assert [run.state for run in pool.runs] == ["failed", "diverged", "finished"]
    assert pool.runs[0].reason == "it broke"
    assert pool.runs[1].diverged_at == 1
    assert pool.runs[2].value == 0.25
    assert ("adding/good/seed0", "running") in seen and ("adding/bad/seed0", "failed") in seen


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError])
def test_whatever_ends_the_sweep_ends_its_processes(
    end: type[BaseException], processes: Processes, tmp_path: Path
) -> None:
    pool = Sweep([declared(f"endless{i}") for i in range(3)], tmp_path, Local(2, cores=2))
    news = 0

    def interrupt(run: RunState) -> None:
        nonlocal news
        news += run.first_update is not None
        if news == 2:
            raise end

    with pytest.raises(end):
        pool.go(interrupt)
    assert sorted(processes.stopped) == ["endless0", "endless1"]
    assert [run.state for run in pool.runs] == ["running", "running", "waiting"]


@pytest.mark.parametrize("jobs", [0, -1, 3])
def test_jobs_must_be_possible(jobs: int, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=rf"jobs must be at least 1 and at most 2, the number of cores here, got {jobs}"
    ):
        Local(jobs, cores=2)


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    train(declared("run", lr=0.5).run, tmp_path / "adding/run/seed0")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RefusedError, match=r"adding/run/seed0 contains another run: lr is 0.5, requested 0.001"):
        Sweep([declared("other"), declared("run")], tmp_path, Local(1))
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_of_a_single_run_is_refused(tmp_path: Path) -> None:
    train(declared("run").run, tmp_path)
    with pytest.raises(RefusedError, match="contains a single run"):
        Sweep([declared("run")], tmp_path, Local(1))


def test_damaged_options_are_a_failure_of_that_run_alone(processes: Processes, tmp_path: Path) -> None:
    runs = [declared("damaged"), declared("good")]
    begin(runs[0], tmp_path, threads=1)
    (tmp_path / runs[0].folder / "options.json").write_text("{")
    pool = Sweep(runs, tmp_path, Local(1, cores=1))
    pool.go(ignore)
    assert [run.state for run in pool.runs] == ["failed", "finished"]
    assert "options.json is damaged" in str(pool.runs[0].reason)


def test_time_left_follows_the_pace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = 100.0
    monkeypatch.setattr(sweep.time, "monotonic", lambda: now)
    pool = Sweep(
        [declared("a", updates=100), declared("b", updates=100), declared("c", updates=50)], tmp_path, Local(1, cores=1)
    )
    assert pool.seconds_left is None
    first, second, _ = pool.runs
    first.state, first.first_update, first.update = "running", 20, 60  # continued from 20: 40 updates of this sweep
    now = 110.0
    assert pool.seconds_left == pytest.approx((40 + 100 + 50) * 10.0 / 40)
    first.state, second.state = "target_reached", "failed"  # what is over needs no more time
    assert pool.seconds_left == pytest.approx(50 * 10.0 / 40)


def test_the_note_of_a_run_lasts_until_its_next_news(processes: Processes, tmp_path: Path) -> None:
    """And says nothing about how far the run is: it may come before the run knows where it resumes."""
    pool = Sweep([declared("endless")], tmp_path, Local(1, cores=1))
    (run,) = pool.runs
    seen = []
    for message in (
        Message(started=True),
        Message(update=0, updates=0, note="preparing clips"),
        Message(update=1, updates=2, note="resuming from update 1"),
        Message(update=1, updates=2, value=0.5),
    ):
        sweep._take(run, message)
        seen.append((run.note, run.first_update))
    assert seen == [(None, None), ("preparing clips", None), ("resuming from update 1", None), (None, 1)]
