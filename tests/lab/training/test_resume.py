"""A run goes on to the bits of one that was never interrupted, whatever happened to it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gatedrnn import files
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import CHECKPOINTS
from gatedrnn.lab.tasks import Copy
from gatedrnn.lab.training import OPTIMIZERS, RefusedError, Run, Training, train

from .runs import SMALL, changed, result, stopped


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    train(SMALL, folder)
    return result(folder)


def _continued(folder: Path, run: Run = SMALL) -> tuple[list[str], dict[str, Any]]:
    """What was said, and the result."""
    said: list[str] = []
    train(run, folder, lambda status: said.append(status.note) if status.note else None)
    return said, result(folder)


@pytest.mark.parametrize("update", [0, 1, 9, 10, 11, 30])
def test_a_run_that_was_stopped_goes_on(update: int, tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    stopped(tmp_path, update)
    said, found = _continued(tmp_path)
    assert said == [f"resuming from update {max(0, update - 1)}"]
    assert found == uninterrupted


def test_a_run_that_was_stopped_often(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    for update in (3, 4, 10, 17, 20, 29):
        stopped(tmp_path, update)
    record = train(SMALL, tmp_path)
    assert record["resumed"] == 6
    assert result(tmp_path) == uninterrupted


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimiser_goes_on(optimizer: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"momentum": 0.9} if optimizer in ("sgd", "rmsprop") else {}
    training = Training(
        **options, optimizer=optimizer, lr=0.01, schedule="plateau", patience=1, updates=12, batch_size=4,
        evaluate_every=3, evaluation_size=5, checkpoint_seconds=0.0, threads=1,
    )  # fmt: skip
    run = Run(Copy(4), Model(hidden_size=8, cell="gru"), training)
    train(run, tmp_path / "whole")
    stopped(tmp_path / "parts", 7, run)
    _, found = _continued(tmp_path / "parts", run)
    assert found == result(tmp_path / "whole")


def test_two_threads_go_on_as_two_threads(tmp_path: Path) -> None:
    run = changed(threads=2)
    train(run, tmp_path / "whole")
    stopped(tmp_path / "parts", 12, run)
    used: list[int] = []
    # Not asked for again, they are those of the record.
    train(changed(threads=None), tmp_path / "parts", lambda status: used.append(torch.get_num_threads()))
    assert set(used) == {2}
    assert result(tmp_path / "parts") == result(tmp_path / "whole")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [_truncate, _zero, _flip, Path.unlink])
@pytest.mark.parametrize("name", ["weights.safetensors", "state.safetensors", "metrics.jsonl", "checkpoint.json"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(
    name: str, harm: Callable[[Path], None], tmp_path: Path, uninterrupted: dict[str, Any]
) -> None:
    stopped(tmp_path, 15)
    harm(tmp_path / CHECKPOINTS / "00000014" / name)
    said, found = _continued(tmp_path)
    assert said[0].startswith("checkpoint 00000014 is damaged (") and name in said[0]
    assert said[0].endswith("moved aside to damaged-00000014-1")
    assert said[1] == "resuming from update 13"
    assert found == uninterrupted


def test_with_all_checkpoints_damaged_the_run_begins_again(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    stopped(tmp_path, 15)
    for folder in (tmp_path / CHECKPOINTS).iterdir():
        _zero(folder / "state.safetensors")
    said, found = _continued(tmp_path)
    assert len(said) == 3 and said[-1] == "resuming from update 0"
    assert found == uninterrupted


@pytest.mark.parametrize("harm", [_truncate, _zero, Path.unlink])
@pytest.mark.parametrize("name", ["metrics.jsonl", "environment.json"])
def test_damage_beside_the_checkpoints(
    name: str, harm: Callable[[Path], None], tmp_path: Path, uninterrupted: dict[str, Any]
) -> None:
    stopped(tmp_path, 15)
    harm(tmp_path / name)
    assert _continued(tmp_path)[1] == uninterrupted


@pytest.mark.parametrize(
    ("name", "before", "described"),
    [
        ("torch", "2.4.0", f"torch: 2.4.0, now {torch.__version__}"),
        ("commit", {"head": "0123456789abcdef", "dirty": True}, "commit: 012345678 with local changes, now unknown"),
    ],
)
def test_a_different_environment_is_said_and_kept(
    name: str, before: Any, described: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatedrnn.lab.training.environment._commit", lambda: None)
    stopped(tmp_path, 15)
    path = tmp_path / "environment.json"
    begun = json.loads(path.read_text())
    path.write_text(json.dumps({**begun, name: before}))
    said, _ = _continued(tmp_path)
    warning = f"resumed in a different environment ({described}); results may not be bit-identical"
    assert warning in said and warning in json.loads((tmp_path / "record.json").read_text())["notes"]
    assert json.loads(path.read_text()) == {**begun, name: before, "later": [begun]}


def test_the_note_on_the_environment_survives_a_kill(tmp_path: Path) -> None:
    """The file already has the new environment: the next process would not see a change."""
    stopped(tmp_path, 15)
    path = tmp_path / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "torch": "2.4.0"}))
    stopped(tmp_path, 15, changed(checkpoint_seconds=1e6))
    record = train(changed(checkpoint_seconds=1e6), tmp_path)
    assert [note for note in record["notes"] if note.startswith("resumed in a different environment (torch: 2.4.0")]


def test_a_damaged_record_is_written_anew(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    train(SMALL, tmp_path)
    _truncate(tmp_path / "record.json")
    said, found = _continued(tmp_path)
    assert said == ["resuming from update 30", "record.json was damaged and is written again"]
    assert found == uninterrupted


def test_a_run_killed_between_its_last_checkpoint_and_its_record(tmp_path: Path) -> None:
    run = changed(budget_seconds=1e-6)
    record = train(run, tmp_path)
    (tmp_path / "record.json").unlink()
    again = train(run, tmp_path)
    assert {**again, "resumed": 0} == record


@pytest.mark.parametrize("failing", ["write_through", "append"])
@pytest.mark.parametrize("call", [1, 4, 17, 40])
def test_a_full_disk_leaves_the_checkpoint_before(
    failing: str, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: dict[str, Any]
) -> None:
    write, calls = getattr(files, failing), 0

    def full(path: Path, content: Any) -> None:
        nonlocal calls
        calls += 1
        if calls >= (call if failing == "write_through" else min(call, 4)):
            write(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content)

    with monkeypatch.context() as patch:
        user = "records.checkpoints" if failing == "write_through" else "training.state"
        for module in ("files", f"lab.{user}"):
            patch.setattr(f"gatedrnn.{module}.{failing}", full)
        with pytest.raises(OSError, match="No space left on device"):
            train(SMALL, tmp_path)
    assert list(tmp_path.rglob("*.tmp")) == []
    assert _continued(tmp_path)[1] == uninterrupted


def test_a_finished_run_is_reported_and_nothing_is_written(tmp_path: Path) -> None:
    record = train(SMALL, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train(SMALL, tmp_path) == record
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (Run(Copy(10), SMALL.model, SMALL.training), "task is adding, requested copy"),
        (Run(SMALL.task, Model(hidden_size=9), changed(lr=1.0).training), "hidden_size is 8, requested 9"),
        (changed(lr=0.5), "lr is 0.001, requested 0.5"),
        (changed(threads=2), "threads is 1, requested 2"),
        (changed(budget_seconds=9.0), "budget_seconds is None, requested 9.0"),
    ],
)
def test_another_run_is_refused(other: Run, difference: str, ended: bool, tmp_path: Path) -> None:
    if ended:
        train(SMALL, tmp_path)
    else:
        stopped(tmp_path, 3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(RefusedError, match=f"contains another run: {difference}; choose another folder"):
        train(other, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_how_often_a_run_is_saved_may_change(tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    stopped(tmp_path, 15)
    assert _continued(tmp_path, changed(checkpoint_seconds=60.0))[1] == uninterrupted


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RefusedError, match="is not empty and contains no run; choose another folder"):
        train(SMALL, tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("text", ['{"schema": 1', '{"schema": 2, "kind": "gatedrnn run"}'])
def test_options_that_cannot_be_read_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text(text)
    with pytest.raises(ValueError, match="options.json"):
        train(SMALL, tmp_path)
    assert os.listdir(tmp_path) == ["options.json"]


def test_a_second_process_is_refused_while_the_first_trains(tmp_path: Path) -> None:
    refused: list[str] = []

    def meanwhile(status: Any) -> None:
        if status.update == 5:
            with pytest.raises(RefusedError) as told:
                train(SMALL, tmp_path)
            refused.append(str(told.value))

    train(SMALL, tmp_path, meanwhile)
    assert refused == [
        f"{tmp_path} is in use by another training process; wait until it ends, or choose another folder"
    ]


_KILLING = """
import os, random, signal, sys, time
from pathlib import Path
import torch._dynamo  # optimisers import it when they are first made: once here, not again in each child
from gatedrnn.lab.training import train
from tests.lab.training import runs, test_language, toy

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
run = eval(sys.argv[3])

def start(out):
    child = os.fork()  # nothing has computed in this process: it has no threads that a fork could lose
    if child == 0:
        try:
            train(run, out)
            os._exit(0)
        finally:
            os._exit(1)
    return child

begin = time.monotonic()
assert os.waitpid(start(folder / "whole"), 0)[1] == 0
duration = time.monotonic() - begin
randomness, killed, part = random.Random(1), 0, 0
while killed < kills:
    while True:
        child = start(folder / f"part{part}")
        time.sleep(randomness.uniform(0.0, duration))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):  # it was faster
            assert status == 0
            break
        killed += 1
    part += 1
print(killed)
"""


def _kill_and_compare(folder: Path, kills: int, run: str) -> None:
    command = [sys.executable, "-c", _KILLING, str(folder), str(kills), run]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=root)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= kills
    whole = result(folder / "whole")
    parts = sorted(folder.glob("part*"))
    assert parts
    for part in parts:
        assert result(part) == whole
    shutil.rmtree(folder)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    _kill_and_compare(tmp_path / "runs", 4, "runs.changed(updates=40)")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("checkpoint_seconds", [0.0, 0.05])
@pytest.mark.parametrize(
    "run",
    [
        "runs.changed(updates=100, {})",
        "toy.changed(toy.IMAGES, epochs=11, {})",
        "toy.changed(toy.TEXT, {})",
        "test_language.language_run(folder, {})",
    ],
)
def test_killed_at_many_random_moments(run: str, threads: int, checkpoint_seconds: float, tmp_path: Path) -> None:
    """Sixty kills at least of each run, over the four cases: in the middle of epochs, and across the averaging."""
    options = f"threads={threads}, checkpoint_seconds={checkpoint_seconds}"
    _kill_and_compare(tmp_path / "runs", 15, run.format(options))
