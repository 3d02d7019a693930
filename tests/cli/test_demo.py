"""``gatedrnn demo``: what it trains, what it says, and that it keeps its time."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gatedrnn import cli
from gatedrnn.cli import demo
from gatedrnn.lab.experiments.demo import NATIVE, REFERENCE
from gatedrnn.lab.records import read_run


def metrics(*errors: float | None) -> list[dict[str, Any]]:
    return [{"update": 50 * i, "mse": error} for i, error in enumerate(errors)]


@pytest.mark.parametrize(
    ("sigmoid", "fast", "said"),
    [
        (
            (1.0, 0.17, 0.174),
            (1.0, 0.15, 0.016),
            "After 100 updates on sequences of 200 steps the fast gate has an MSE of 0.016; "
            "the sigmoid gate is still at 0.174, the level of guessing (0.167).",
        ),
        (
            (1.0, 0.17, 0.174, 0.1),  # one run stopped earlier: the last update that both have counts
            (1.0, 0.15),
            "After 50 updates on sequences of 200 steps the fast gate has an MSE of 0.150, "
            "the sigmoid gate of 0.170: these runs do not show the effect.",
        ),
        (
            (1.0, 0.06),
            (1.0, 0.01),
            "After 50 updates on sequences of 200 steps the fast gate has an MSE of 0.010, "
            "the sigmoid gate of 0.060; guessing would give 0.167.",
        ),
        (
            (1.0, 0.17),
            (1.0, None),
            "After 50 updates the fast gate diverged: these runs do not show which gate learns sooner.",
        ),
    ],
)
def test_the_sentence_says_what_the_records_say(sigmoid: tuple[float, ...], fast: tuple[float, ...], said: str) -> None:
    assert demo.learned(NATIVE, metrics(*sigmoid), metrics(*fast)) == said


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The theory left out, which has tests of its own, and a training of seconds."""
    monkeypatch.setattr(demo, "regenerate", lambda out, names: None)
    training = dataclasses.replace(NATIVE.training, updates=4, evaluate_every=2, batch_size=4, evaluation_size=8)
    monkeypatch.setattr(demo, "NATIVE", dataclasses.replace(NATIVE, training=training))
    monkeypatch.setattr(demo, "REFERENCE", dataclasses.replace(REFERENCE, training=training))


@pytest.mark.usefixtures("small")
def test_the_demo_ends_with_the_page_and_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for attempt in range(2):
        assert cli.main(["demo", "--out", str(tmp_path)]) == 0
        printed = capsys.readouterr()
        *_, page, sentence = printed.out.splitlines()
        assert page == f"report: {tmp_path / 'report/index.html'}" and Path(page.removeprefix("report: ")).exists()
        length = read_run(next((tmp_path / "runs").glob("adding_*/fast/seed0"))).options["task"]["length"]
        assert sentence.startswith(f"After 4 updates on sequences of {length} steps the fast gate has an MSE of ")
        assert sentence.endswith(": these runs do not show the effect.")
        # The second time, the runs are found complete.
        assert ("2 of 2 runs are already complete" in printed.err) == bool(attempt)


@pytest.mark.usefixtures("small")
def test_a_folder_with_other_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("adding_200/fast", "adding_60/fast"):
        (tmp_path / "runs" / place / "seed0").mkdir(parents=True)
        (tmp_path / "runs" / place / "seed0" / "mine").write_text("mine", encoding="utf-8")
    assert cli.main(["demo", "--out", str(tmp_path)]) == 2
    assert "is not empty and contains no run" in capsys.readouterr().err


def test_without_the_engine_the_sequence_is_shorter_and_that_is_said() -> None:
    code = "from gatedrnn.cli import demo; budget, why = demo._setting(); print(budget.task.steps, why)"
    environment = {**os.environ, "GATEDRNN_CPU_LIBRARY": "/nonexistent"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert ended.stdout.startswith("60 \n(instead of T=200, because the CPU engine is not available: /nonexistent")
    assert all(variant.model.engine == "reference" for variant in REFERENCE.models)


@pytest.mark.slow
@pytest.mark.parametrize("library", [None, "/nonexistent"])
def test_the_demo_keeps_three_minutes_and_shows_the_effect(library: str | None, tmp_path: Path) -> None:
    environment = {**os.environ, **({"GATEDRNN_CPU_LIBRARY": library} if library else {})}
    begin = time.monotonic()
    command = [sys.executable, "-m", "gatedrnn.cli", "demo", "--out", str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert time.monotonic() - begin < 180
    assert "the level of guessing (0.167)." in ended.stdout.splitlines()[-1]
    assert ("the CPU engine is not available" in ended.stdout) == (library is not None)
