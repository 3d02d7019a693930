"""Several processes under torchrun train one run as one process does, and go on to the bit whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from gatedrnn.lab.records import CHECKPOINTS, read_checkpoint, read_run
from gatedrnn.lab.tasks import Batch
from gatedrnn.lab.training.ranks import Ranks

from .runs import result
from .together import RUNS

ROOT = Path(__file__).parents[3]
BOUND = 240.0  # seconds: what takes longer hangs


def started(
    processes: int, *arguments: object, restarts: int = 0, module: str = "tests.lab.training.together"
) -> subprocess.Popen[str]:
    """A module with its arguments, by so many processes on the loopback interface."""
    launch = [
        *("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"),
        *(f"--max-restarts={restarts}", "--monitor-interval=0.1"),
    ]
    command = [sys.executable, *(launch if processes > 1 else []), "-m", module]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*command, *map(str, arguments)], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def trained(processes: int, *arguments: object) -> str:
    """What was printed."""
    process = started(processes, *arguments)
    try:
        printed, errors = process.communicate(timeout=BOUND)
    finally:
        _kill_all(process)
    assert process.returncode == 0, errors
    return printed


def _kill_all(process: subprocess.Popen[str]) -> None:
    """The agent and its workers, which are sessions of their own, at once and without grace."""
    for pid in _descendants(process.pid):
        os.kill(pid, signal.SIGKILL)
    if process.poll() is None:
        process.kill()
    process.communicate()  # waits, and closes what it printed to


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return children + [below for child in children for below in _descendants(child)]


def _wait_for(update: int, folder: Path) -> None:
    deadline = time.monotonic() + BOUND
    while not any(int(one.name) >= update for one in (folder / CHECKPOINTS).glob("[0-9]*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def losses(folder: Path) -> list[float]:
    return [line["train_loss"] for line in read_run(folder).metrics[1:]]


def test_the_parts_of_a_batch_are_the_batch() -> None:
    whole = Batch(torch.arange(14.0).view(2, 7, 1), torch.arange(7).view(1, 7), torch.arange(7))
    parts = [Ranks(rank, 3).part(whole) for rank in range(3)]
    assert [part.input.shape[1] for part, _ in parts] == [3, 2, 2]
    assert torch.equal(torch.cat([part.input for part, _ in parts], 1), whole.input)
    assert torch.equal(torch.cat([part.target for part, _ in parts], 1), whole.target)
    assert torch.equal(torch.cat([part.lengths for part, _ in parts if part.lengths is not None]), torch.arange(7))
    assert [share for _, share in parts] == pytest.approx([3 / 7, 2 / 7, 2 / 7])
    small = Batch(whole.input[:, :1], whole.target[:, :1])
    assert [(part.input.shape[1], share) for part, share in (Ranks(rank, 2).part(small) for rank in (0, 1))] == [
        (1, 1.0),
        (1, 0.0),  # the same steps, and nothing of it counts
    ]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_the_gradient_is_that_of_the_whole_batch(processes: int, tmp_path: Path) -> None:
    moved = []
    for count in (1, processes):
        folder = tmp_path / str(count)
        trained(count, "gradient", folder)
        last = max((folder / CHECKPOINTS).glob("[0-9]*"))
        moved.append(safetensors.torch.load(read_checkpoint(last).files["weights.safetensors"]))
    assert any(torch.linalg.vector_norm(value) > 0.1 for value in moved[0].values())
    for name, value in moved[0].items():
        torch.testing.assert_close(moved[1][name], value, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_in_float64_the_loss_stays_that_of_one_process(processes: int, tmp_path: Path) -> None:
    for count in (1, processes):
        trained(count, "long", tmp_path / str(count), "float64")
    ours, theirs = losses(tmp_path / str(processes)), losses(tmp_path / "1")
    assert len(ours) == 200 and theirs[-1] < theirs[0]
    assert ours == pytest.approx(theirs, rel=0, abs=1e-9)
    found = read_run(tmp_path / str(processes))
    assert found.record is not None and found.record["processes"] == processes


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_killed_workers_and_killed_everything_end_in_the_same_bits(processes: int, tmp_path: Path) -> None:
    trained(processes, "killed", tmp_path / "whole")

    process = started(processes, "killed", tmp_path / "parts", restarts=2)
    try:
        _wait_for(60, tmp_path / "parts")
        workers = [pid for pid in _descendants(process.pid) if b"together" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(workers[-1], signal.SIGKILL)
        _wait_for(160, tmp_path / "parts")  # the agent has started all of them again
    finally:
        _kill_all(process)
    resumed = read_checkpoint(max((tmp_path / "parts" / CHECKPOINTS).glob("[0-9]*"))).note["counts"]["resumed"]
    assert resumed == 1

    trained(processes, "killed", tmp_path / "parts")
    assert result(tmp_path / "parts") == result(tmp_path / "whole")
    found = read_run(tmp_path / "parts").record
    assert found is not None and found["resumed"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "images"])
def test_carried_text_and_epochs_are_shared_too(name: str, tmp_path: Path) -> None:
    """Rows that do not divide evenly, an epoch's smaller last batch, carried state, averaging, a test split."""
    for count in (1, 2):
        trained(count, name, tmp_path / str(count))
    ours, theirs = read_run(tmp_path / "2"), read_run(tmp_path / "1")
    metric = RUNS[name].task.metric
    # float32, and sums in another order over some tens of updates
    for one, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)
        assert one[metric] == pytest.approx(other[metric], rel=1e-3, abs=0.06)  # one of the samples
    assert ours.record is not None and theirs.record is not None
    assert ("test" in ours.record) == ("test" in theirs.record)


@pytest.mark.slow
def test_another_number_of_processes_must_be_asked_for_and_is_noted(tmp_path: Path) -> None:
    process = started(2, "killed", tmp_path)
    try:
        _wait_for(20, tmp_path)
    finally:
        _kill_all(process)
    before = _options(tmp_path)
    assert before["processes"] == 2
    said = trained(1, "killed", tmp_path)
    assert said == (
        f"refused: {tmp_path} was started with 2 processes, but there are 1: start as many as before, or pass --processes 1 "
        "to resume with a different order of summation\n"
    )
    assert _options(tmp_path) == before
    assert trained(1, "killed", tmp_path, "resized", 1) == ""
    found = read_run(tmp_path).record
    assert found is not None and found["outcome"] == "finished"
    assert "resuming with a different number of processes (2, now 1)" in found["notes"]
    assert _options(tmp_path)["processes"] is None  # one


@pytest.mark.slow
def test_the_command_speaks_once(tmp_path: Path) -> None:
    run = ["--length", "10", "--hidden-size", "4", "--updates", "3", "--batch-size", "4", "--evaluation-size", "5"]
    command = ["train", "adding", *run, "--out", str(tmp_path / "run")]
    process = started(2, *command, module="gatedrnn.cli")
    try:
        printed, errors = process.communicate(timeout=BOUND)
    finally:
        _kill_all(process)
    assert process.returncode == 0, errors
    assert printed.startswith("finished after 3 updates in ") and printed.count("\n") == 1
    assert errors.count("update 3/3") == 1

    process = started(2, *command, "--processes", "3", module="gatedrnn.cli")
    try:
        printed, errors = process.communicate(timeout=BOUND)
    finally:
        _kill_all(process)
    assert process.returncode == 1 and printed == ""
    assert errors.count("gatedrnn: --processes must be 2, which torchrun started, got 3\n") == 1


def _options(folder: Path) -> dict[str, Any]:
    training: dict[str, Any] = json.loads((folder / "options.json").read_text())["training"]
    return training
