"""What launchers of other machines have in common: news through the shared folder, and machines that do not fit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import gatedrnn
from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import Job, Message
from gatedrnn.lab.experiments.launchers.remote import Remote, RemoteRun, Sender, last_message, news_file
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training, train

TINY = Run(Adding(4), Model(hidden_size=4), Training(updates=6, evaluate_every=2, batch_size=2, evaluation_size=4))


class Threads(Remote):
    """An engine that makes each run in a thread of this process."""

    interval = 0.05

    def open(self, out: Path, threads: int) -> None:
        self.answers: dict[str, str] = {}
        self.mark(out)

    def _submit(self, job: Job, run: RemoteRun) -> None:
        def make() -> None:
            self.answers[job.name] = run()

        threading.Thread(target=make, daemon=True).start()

    def _ended(self) -> Iterator[tuple[str, Message]]:
        time.sleep(self.interval)
        for name in [*self.answers]:
            yield name, last_message(self.answers.pop(name))

    def _cancel(self, name: str) -> None:
        raise AssertionError("nothing is stopped here")


def test_a_sweep_elsewhere_tells_its_news_and_leaves_nothing_but_its_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pool = Sweep([DeclaredRun("fast", 0, TINY, "fast/seed0")], out, Threads(None, None))
    seen: list[tuple[str, int]] = []
    pool.go(lambda run: seen.append((run.state, run.update)))
    assert seen[0] == ("running", 0) and seen[-1] == ("finished", 6)
    assert ("running", 2) in seen
    assert pool.runs[0].value == train(TINY, tmp_path / "here")["final"]["mse"]
    assert [path.name for place in (out, out / "fast") for path in place.iterdir()] == ["fast", "seed0"]


def test_a_machine_that_does_not_fit_says_why(tmp_path: Path) -> None:
    (tmp_path / "mark").write_text("seen")
    job = Job("run", TINY, tmp_path / "run")
    for sender, why in {
        Sender(
            "0.0.1", str(tmp_path / "mark"), "seen"
        ): f"it has gatedrnn {gatedrnn.__version__}, this machine has 0.0.1",
        Sender(
            gatedrnn.__version__, str(tmp_path / "mark"), "other"
        ): f"it cannot access {tmp_path}: choose an --out on",
        Sender(gatedrnn.__version__, "/nowhere/mark", "seen"): "it cannot access /nowhere: choose an --out on storage",
    }.items():
        message = last_message(RemoteRun(job.as_json(), sender)())
        assert message.ended and why in str(message.failed)
    assert Sender(gatedrnn.__version__, str(tmp_path / "mark"), "seen").differs() is None
    assert [path.name for path in tmp_path.iterdir()] == ["mark"]


def test_unfinished_lines_of_news_wait_or_are_left_out(tmp_path: Path) -> None:
    class Silent(Threads):
        def _submit(self, job: Job, run: RemoteRun) -> None:
            pass

    launcher, job = Silent(None, None), Job("run", TINY, tmp_path / "run")
    launcher.open(tmp_path, 1)
    launcher.start(job)
    with open(news_file(job), "w") as file:
        for text, wanted in {
            '{"update": 1}\n{"upd': Message(update=1),
            'ate": 2}\n': Message(update=2),
            '{"up{"started": true}\n{"update": 3}\n': Message(update=3),  # a machine died, another one goes on
        }.items():
            file.write(text)
            file.flush()
            assert launcher.news() == ("run", wanted)


@pytest.mark.parametrize("jobs", [None, 1])
def test_all_are_given_to_the_engine_or_so_many(jobs: int | None, tmp_path: Path) -> None:
    most = 0

    def changed(run: RunState) -> None:
        nonlocal most
        most = max(most, sum(one.state == "running" for one in pool.runs))

    class Counting(Threads):
        def _submit(self, job: Job, run: RemoteRun) -> None:
            nonlocal given
            given = max(given, len(self.under_way))
            self.answers[job.name] = '{"failed": "as meant"}'

    given = 0
    pool = Sweep([DeclaredRun("fast", 0, TINY, f"fast/{i}") for i in range(3)], tmp_path, Counting(jobs, 1))
    pool.go(changed)
    assert given == (3 if jobs is None else jobs)
    assert [run.reason for run in pool.runs] == ["as meant"] * 3


def test_a_relative_folder_is_the_same_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of another machine begins in another folder."""
    monkeypatch.chdir(tmp_path)
    pool = Sweep([DeclaredRun("fast", 0, TINY, "fast/seed0")], Path("out"), Threads(None, None))
    assert pool.runs[0].folder == tmp_path / "out" / "fast" / "seed0"
