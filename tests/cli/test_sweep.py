"""``gatedrnn sweep``: wrong arguments, what it prints, its exit codes, and how it stops."""

from __future__ import annotations

import fcntl
import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from gatedrnn import cli
from gatedrnn.cli.sweep_progress import shown, summary
from gatedrnn.lab.experiments import EXPERIMENTS, OWN
from gatedrnn.lab.experiments.launchers import Local
from gatedrnn.lab.experiments.sweep import Sweep

SMOKE = ["sweep", "fig:adding_mse", "--budget", "smoke", "--jobs", "1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "LABEL must be one of " + ", ".join([*EXPERIMENTS, *OWN]) + ", got 'nonsense'"),
        (["fig:demo"], "fig:demo needs no training: run gatedrnn theory --out DIR"),
        (["fig:copy_loss", "--budget", "huge"], "--budget must be one of paper, desk, smoke, got 'huge'"),
        (["fig:copy_loss", "--models", "fast,slow"], "--models must be chosen from softsign,"),
        (["fig:copy_loss", "--models", ","], "--models must be chosen from softsign,"),
        (["fig:copy_loss", "--seeds", "7"], "--seeds must be chosen from 0,1,2,3,4, got '7'"),
        (["own:tones", "--tasks", "tones_5"], "--tasks must be chosen from tones,tones_500,tones_2000,tones_8000,"),
        (["fig:copy_loss", "--seeds", "x"], "--seeds must be chosen from 0,1,2,3,4, got 'x'"),
        (
            ["fig:copy_loss", "--seeds", "4", "--models", "NRU"],
            "no run of fig:copy_loss matches --models NRU --seeds 4",
        ),
        (["fig:copy_loss", "--jobs", "0"], "--jobs must be at least 1 and at most "),
        (["fig:copy_loss", "--jobs", "100000"], "--jobs must be at least 1 and at most "),
        (["fig:copy_loss", "--threads", "100000"], "--threads must be at least 1 and at most "),
        (["fig:copy_loss", "--launcher", "cloud"], "--launcher must be one of local, ray, slurm, got 'cloud'"),
        (["fig:copy_loss", "--address", "auto"], "--address is for --launcher ray, not for local"),
        (["fig:copy_loss", "--launcher", "ray", "--minutes", "9"], "--minutes is for --launcher slurm, not for ray"),
        (["fig:copy_loss", "--launcher", "slurm", "--minutes", "0"], "--minutes must be at least 1, got 0"),
        (["fig:copy_loss", "--launcher", "ray", "--threads", "0"], "--threads must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["sweep", *arguments, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"gatedrnn: {said}") and printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_as_folder_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert cli.main([*SMOKE, "--out", str(tmp_path / "file")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("gatedrnn: cannot write to") and printed.count("\n") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_sweep_lists_its_failures_and_the_same_command_tries_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*SMOKE, "--models", "fast,NRU", "--out", str(tmp_path)]
    options = tmp_path / "adding/smoke/fast/seed0/options.json"
    options.parent.mkdir(parents=True)
    options.write_text("{", encoding="utf-8")
    assert cli.main(command) == 1
    printed = capsys.readouterr()
    assert printed.out == f"2 runs: 1 finished, 1 failed; the records are in {tmp_path}\n"
    assert "1/2  adding/smoke/NRU/seed0: started" in printed.err
    assert "2/2  adding/smoke/NRU/seed0: finished after 4 updates, mse" in printed.err
    assert printed.err.startswith(f"adding/smoke/fast/seed0: failed: {options} is damaged")
    assert printed.err.count("is damaged") == 1 and "\nfailed: adding/smoke/fast/seed0\n" in printed.err
    assert printed.err.endswith("gatedrnn: 1 of 2 runs failed; run the same command to try them again\n")

    options.unlink()
    assert cli.main(command) == 0
    printed = capsys.readouterr()
    assert printed.out == f"2 runs: 2 finished (1 already complete); the records are in {tmp_path}\n"
    assert printed.err.startswith("1 of 2 runs are already complete\n")
    assert (tmp_path / "adding/smoke/fast/seed0/record.json").exists()


def test_the_reason_of_a_failure_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEDRNN_DATA", str(tmp_path / "nothing"))
    command = ["sweep", "tab:results_sc", "--budget", "smoke", "--models", "fast", "--jobs", "1"]
    assert cli.main([*command, "--out", str(tmp_path / "out")]) == 1
    lines = capsys.readouterr().err.splitlines()
    names = [f"speech/smoke/fast/lr=0.001,clip={clip}/seed0" for clip in ("1", "0.1")]
    for number, name in enumerate(names, start=1):
        (said,) = [line for line in lines if f"{name}: failed: " in line]
        assert said.startswith(f"{number}/2  ") and str(tmp_path / "nothing") in said
    assert sum(str(tmp_path / "nothing") in line for line in lines) == 2
    assert lines[-3:] == [
        *(f"failed: {name}" for name in names),
        "gatedrnn: 2 of 2 runs failed; run the same command to try them again",
    ]


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    command = ["sweep", "fig:adding_mse", "--models", "fast", "--seeds", "0,1,2", "--jobs", "1", "--out", str(tmp_path)]
    run = tmp_path / "adding/desk/fast/seed0"
    with subprocess.Popen(
        [sys.executable, "-m", "gatedrnn.cli", *command],
        stderr=subprocess.PIPE,
        text=True,
        # Tests in the background of a shell are told to ignore it, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as sweep:
        deadline = time.monotonic() + 60
        while not (run / "metrics.jsonl").exists():
            assert time.monotonic() < deadline and sweep.poll() is None
            time.sleep(0.05)
        sweep.send_signal(signal.SIGINT)
        _, errors = sweep.communicate(timeout=60)
    assert sweep.returncode == 130
    assert "Traceback" not in errors
    assert "stopped: 3 runs: 1 running, 2 waiting; run the same command to resume" in errors
    with open(run / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody trains there any more
    assert not (run / "record.json").exists()


def test_one_run_is_a_run(tmp_path: Path) -> None:
    pool = Sweep(EXPERIMENTS["fig:copy_loss"].runs("smoke", ["fast"]), tmp_path, Local(1, cores=1))
    assert summary(pool) == "1 run: 1 waiting"


def test_without_a_terminal_there_is_a_line_every_half_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, stream = 1000.0, io.StringIO()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pool = Sweep(EXPERIMENTS["fig:copy_loss"].runs("smoke", ["fast"]), tmp_path, Local(1, cores=1))
    (run,) = pool.runs
    run.state = "running"
    with shown(pool, Console(file=stream, force_terminal=False, width=120)) as changed:
        for update in range(4):
            run.first_update, run.update, run.value, run.rate = 0, update, 0.125, 7.5
            changed(run)
            now += 20.0
    assert stream.getvalue().splitlines() == [
        "0/1  copy/smoke/fast/seed0: started, 1 thread",
        "0/1  copy/smoke/fast/seed0: update 2/4, accuracy 0.125  7.5 updates/s  (about 0:00:40 left)",
    ]


def test_without_a_terminal_a_note_is_a_line_and_the_same_note_of_several_runs_is_one(tmp_path: Path) -> None:
    stream = io.StringIO()
    pool = Sweep(EXPERIMENTS["fig:copy_loss"].runs("smoke", ["fast", "NRU"]), tmp_path, Local(2, cores=2))
    with shown(pool, Console(file=stream, force_terminal=False, width=120)) as changed:
        for note in (None, "preparing clips: 1000 of 2000", "skipped 1 clip: silent [a.wav]", None):
            for run in pool.runs:
                run.state, run.note = "running", note
                changed(run)
    assert stream.getvalue().splitlines() == [
        "0/2  copy/smoke/fast/seed0: started, 1 thread",
        "0/2  copy/smoke/NRU/seed0: started, 1 thread",
        "0/2  copy/smoke/fast/seed0: preparing clips: 1000 of 2000",
        "0/2  copy/smoke/fast/seed0: skipped 1 clip: silent [a.wav]",
    ]


def test_on_a_terminal_a_note_is_the_text_of_one_bar(tmp_path: Path) -> None:
    stream = io.StringIO()
    pool = Sweep(EXPERIMENTS["fig:copy_loss"].runs("smoke", ["fast", "NRU"]), tmp_path, Local(2, cores=2))
    console = Console(file=stream, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    with shown(pool, console) as changed:
        for run in pool.runs:
            run.state, run.note = "running", "skipped 1 clip: silent [a.wav]"
            changed(run)
    last = stream.getvalue().rpartition("runs ")[2]  # the bars as they were drawn last
    assert last.count("skipped 1 clip: silent [a.wav]") == 1 and last.count("accuracy –") == 1


def test_a_terminal_shows_bars_and_a_line_for_each_run_that_ended(tmp_path: Path) -> None:
    stream = io.StringIO()
    pool = Sweep(EXPERIMENTS["fig:copy_loss"].runs("smoke", ["fast", "NRU", "JANET"]), tmp_path, Local(1))
    fast, janet, nru = pool.runs
    with shown(pool, Console(file=stream, force_terminal=True, width=120, _environ={"TERM": "xterm"})) as changed:
        for run in (fast, nru, janet):
            run.state = "running"
            changed(run)
        fast.update, fast.value, fast.rate = 3, 0.125, 7.5
        changed(fast)
        fast.state, fast.seconds = "target_reached", 2.0
        nru.state, nru.diverged_at = "diverged", 2
        janet.state, janet.reason = "failed", "no more disk"
        for run in (fast, nru, janet):
            changed(run)
    text = stream.getvalue()
    assert "copy/smoke/fast/seed0: target reached after 3 updates, accuracy 0.125, 2 s" in text
    assert "copy/smoke/NRU/seed0: diverged at update 2, accuracy –" in text
    assert "copy/smoke/JANET/seed0: failed: no more disk" in text
    assert "3/3" in text
    assert summary(pool) == "3 runs: 1 target reached, 1 diverged, 1 failed"
