"""Whose folder it is: stable keys, other runs and newer formats refused, damage moved aside, links not followed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gatedrnn.lab.fields import added, beside, keyed, made, plain
from gatedrnn.lab.records import CHECKPOINTS, find_runs, read_json, write_json
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import RefusedError, Run, Training, train

from .runs import SMALL, changed, result, snapshot, stopped
from .toy import IMAGES

RESULTS = Path(__file__).parents[3] / "results"
# The keys that the first records have. An option that is added later must leave them as they are.
KEYS = """
adding/desk/fast/seed0 e01f69ee35e5553515d5f8e1f57ff919
adding/desk/fast/seed1 828b6157abbbec45021f7f8d4fb987d9
adding/desk/fast/seed2 0cff92f63c782c8b174e065e0057fd37
adding/desk/fast/seed3 70db4a6df5130cd082f8b031731608dc
adding/desk/fast/seed4 0b0447f4d7e72719d675b2272263c301
adding/desk/sigmoid/seed0 d8f8e21e6d7664f48e67ab6db4fd34d7
adding/desk/sigmoid/seed1 742cc56e874aa5d5cf7ea929cb97a260
adding/desk/sigmoid/seed2 c5d10437714192c1e1c628c26d81a9f6
adding/desk/sigmoid/seed3 579f0b7237ee558b9753a39fb2ddd19e
adding/desk/sigmoid/seed4 05e424ab15b7fe66e6366d54c7862d05
adding/desk/softsign/seed0 2d63056378503cf49e8d533b9ede820a
adding/desk/softsign/seed1 30ce2bebbbfbc52126153e2ffa978ae1
adding/desk/softsign/seed2 40462556566de857bb31f34d03fe3833
adding/desk/softsign/seed3 f362800379dd9f0a12419364e0270de2
adding/desk/softsign/seed4 cc55ac6a5ae5cd9c49b4bce1f92beda7
copy/desk/fast/seed0 f8c2ab5e7b8c8ef0eb5aa85b1ed4baf5
copy/desk/fast/seed1 df6a6cc9d68b9bc8cee3d4aff7e3a932
copy/desk/fast/seed2 68c71dc6d381c235c6f2140f8d273eba
copy/desk/fast/seed3 ff7c0af5e62c1f7e9e30ad8b19d2bce4
copy/desk/fast/seed4 5b20f2feed0a8bffdcf0df1ff72ecf3e
copy/desk/sigmoid/seed0 2947691a631287885dcca4b4050bf31f
copy/desk/sigmoid/seed1 981c10effff4cfdf7211cd2134f85ef9
copy/desk/sigmoid/seed2 14d26992fd3698cca689168941b27d55
copy/desk/sigmoid/seed3 b4cbb3c1b4dd934071e7e186346c485d
copy/desk/sigmoid/seed4 716bde12e9ce1832bb55069a7c671341
"""


@pytest.mark.parametrize("line", KEYS.split("\n")[1:-1])
def test_the_first_records_keep_their_keys(line: str) -> None:
    folder, key = line.split()
    options = read_json(RESULTS / folder / "options.json")
    assert options["key"] == key == Run.from_json(options).key()


def test_every_record_has_its_key() -> None:
    for folder in find_runs(RESULTS):
        options = read_json(folder / "options.json")
        assert Run.from_json(options).key() == options["key"], folder


@dataclasses.dataclass(frozen=True)
class Old:
    size: int = 3
    place: str = beside("here")


@dataclasses.dataclass(frozen=True)
class New(Old):
    speed: float = added(2.0, neutral=1.0)
    steps: tuple[int, ...] = added((), neutral=())


def test_an_added_option_enters_the_key_only_where_it_is_not_neutral() -> None:
    assert keyed(Old()) == {"size": 3} == keyed(New(speed=1.0, place="there"))
    assert keyed(New()) == {"size": 3, "speed": 2.0}
    assert keyed(New(speed=1.0, steps=(4, 5))) == {"size": 3, "steps": [4, 5]}
    # What was written before the option existed means its neutral value, not today's default.
    assert made(New, plain(Old())) == New(speed=1.0)
    assert made(New, plain(New(steps=(4,)))) == New(steps=(4,))
    with pytest.raises(ValueError, match="^unknown option 'colour' of New; known options: size, place, speed, steps$"):
        made(New, {"colour": "red"})


@dataclasses.dataclass(frozen=True)
class Paths:
    file: Path = Path("a.csv")
    other: "Path | None" = None  # noqa: UP037 - annotations may be text
    text: str = "a.csv"


def test_a_path_is_written_as_text_and_read_back() -> None:
    options = Paths(Path("b/c.csv"), Path("d"))
    assert plain(options) == {"file": "b/c.csv", "other": "d", "text": "a.csv"}
    assert made(Paths, plain(options)) == options and made(Paths, plain(Paths())) == Paths()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", "^size must be a number, a string, a path, true or false, None, or a list of these, got b'x'$"),
        ((1, {2}), "^size must be a number, .*, got \\(1, \\{2\\}\\)$"),
        ("caf\udce9", "^size must be text in UTF-8, got 'caf\\\\udce9'$"),
    ],
)
def test_what_json_cannot_hold_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plain(Old(size=value))


def test_numpys_numbers_are_pythons(tmp_path: Path) -> None:
    """A run with them is that with Python's, and can be trained."""
    same = changed(updates=np.int64(30), threads=np.int32(1), checkpoint_seconds=np.float32(0))
    assert same.key() == SMALL.key() and type(same.training.updates) is int
    assert plain(New(speed=np.float32(0.5), steps=(np.int64(4),))) == {  # type: ignore[arg-type]
        "size": 3, "place": "here", "speed": 0.5, "steps": [4]
    }  # fmt: skip
    assert train(same, tmp_path)["key"] == SMALL.key()


def test_a_checkpoint_of_another_run_is_refused_and_nothing_touched(tmp_path: Path) -> None:
    stopped(tmp_path / "mine", 5)
    stopped(tmp_path / "theirs", 9, changed(lr=0.5))
    shutil.copytree(tmp_path / "theirs" / CHECKPOINTS / "00000008", tmp_path / "mine" / CHECKPOINTS / "00000008")
    before = snapshot(tmp_path / "mine")
    with pytest.raises(RefusedError, match=r"00000008 belongs to another run; choose another folder$"):
        train(SMALL, tmp_path / "mine")
    assert snapshot(tmp_path / "mine") == before


@pytest.mark.parametrize("name", ["options.json", "record.json", f"{CHECKPOINTS}/00000030/checkpoint.json"])
def test_a_newer_format_is_refused_and_nothing_touched(name: str, tmp_path: Path) -> None:
    train(SMALL, tmp_path)
    if name.startswith(CHECKPOINTS):
        (tmp_path / "record.json").unlink()
    write_json(tmp_path / name, {**read_json(tmp_path / name), "schema": 2})
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match="written in version 2 of the format; this gatedrnn reads version 1"):
        train(SMALL, tmp_path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda options: options.pop("model"), "options.json is damaged: it has no model"),
        (lambda options: options.update(training=3), "options.json is damaged: it has no training"),
        (lambda options: options.update(key=None), "options.json is damaged: it has no key"),
        (
            lambda options: options["training"].update(colour="red"),
            r"/options.json .*: unknown option 'colour' of Training; known",
        ),
        (lambda options: options["training"].update(lr=[1]), "cannot be used here|lr is"),
    ],
)
def test_damaged_options_are_named(change: Any, message: str, tmp_path: Path) -> None:
    stopped(tmp_path, 3)
    options = read_json(tmp_path / "options.json")
    change(options)
    (tmp_path / "options.json").write_text(json.dumps(options))
    with pytest.raises(ValueError, match=message):
        train(SMALL, tmp_path)


@pytest.mark.parametrize("text", ["", '{"kind": "gatedrnn run", ', "[]", "\x00" * 9])
def test_options_that_are_no_json_are_named_with_what_to_do(text: str, tmp_path: Path) -> None:
    stopped(tmp_path, 3)
    (tmp_path / "options.json").write_text(text)
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=r"options\.json is damaged: .+; restore the file or choose another folder$"):
        train(SMALL, tmp_path)
    assert snapshot(tmp_path) == before


def test_checkpoints_damaged_restarted_and_killed_before_their_updates(tmp_path: Path) -> None:
    """The run begins again, and its new checkpoints are kept although the damaged ones have higher numbers."""
    train(SMALL, tmp_path / "whole")
    folder = tmp_path / "run"
    stopped(folder, 20)
    for checkpoint in (folder / CHECKPOINTS).iterdir():
        (checkpoint / "weights.safetensors").write_bytes(b"")
    stopped(folder, 8)
    names = sorted(path.name for path in (folder / CHECKPOINTS).iterdir())
    assert names == ["00000006", "00000007", "damaged-00000018-1", "damaged-00000019-1"]
    said: list[str] = []
    train(SMALL, folder, lambda status: said.append(status.note) if status.note else None)
    assert said == ["resuming from update 7"]
    assert result(folder) == result(tmp_path / "whole")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("final"),
        lambda record: record.update(final=[]),
        lambda record: record["final"].pop("accuracy"),
        lambda record: record.update(outcome=None),
        lambda record: record.update(outcome="unknown"),
        lambda record: record.pop("metric"),
        lambda record: record.update(seconds="long"),
        lambda record: record.pop("diverged_at"),
        lambda record: record.update(test=None),
        lambda record: record["validation"].pop("epoch"),
    ],
)
def test_a_record_without_one_of_its_fields_is_written_again(change: Any, tmp_path: Path) -> None:
    whole = train(IMAGES, tmp_path)
    record = read_json(tmp_path / "record.json")
    change(record)
    write_json(tmp_path / "record.json", record)
    said: list[str] = []
    again = train(IMAGES, tmp_path, lambda status: said.append(status.note) if status.note else None)
    assert said[-1] == "record.json was damaged and is written again"
    assert {**again, "resumed": 0} == {**whole, "resumed": 0}
    assert read_json(tmp_path / "record.json") == again


def test_damaged_metrics_are_moved_aside(tmp_path: Path) -> None:
    train(SMALL, tmp_path / "whole")
    stopped(tmp_path / "run", 15)
    (tmp_path / "run" / "metrics.jsonl").write_text("nonsense\n")
    said: list[str] = []
    train(SMALL, tmp_path / "run", lambda status: said.append(status.note) if status.note else None)
    assert said[0] == "metrics.jsonl was damaged; moved aside to damaged-metrics.jsonl-1 and written again"
    assert (tmp_path / "run" / "damaged-metrics.jsonl-1").read_text() == "nonsense\n"
    assert result(tmp_path / "run") == result(tmp_path / "whole")


def test_an_option_of_a_kind_without_options_is_named() -> None:
    @dataclasses.dataclass(frozen=True)
    class Bare:
        pass

    with pytest.raises(ValueError, match=r"^unknown option 'noise' of Bare, which has no options$"):
        made(Bare, {"noise": 0.1})


@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        CHECKPOINTS,
        "options.json",
        "environment.json",
        "metrics.jsonl",
        "record.json",
        f"{CHECKPOINTS}/00000004",
    ],
)
def test_links_in_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    stopped(folder, 6)
    if (folder / name).exists():
        shutil.move(folder / name, elsewhere)
    (folder / name).symlink_to(elsewhere)
    before = snapshot(tmp_path)
    with pytest.raises(RefusedError, match=f"{name} is a symbolic link: remove it, or choose another folder"):
        train(SMALL, folder)
    assert snapshot(tmp_path) == before


def test_a_link_in_an_empty_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(RefusedError, match=r"\.lock is a symbolic link"):
        train(SMALL, tmp_path / "run")
    assert (tmp_path / "precious").read_text() == "mine"


def test_metrics_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")

    def plant(status: Any) -> None:
        path = tmp_path / "run" / "metrics.jsonl"
        if status.update == 5 and not path.is_symlink():
            path.unlink()
            path.symlink_to(tmp_path / "precious")

    with pytest.raises(OSError, match="metrics.jsonl"):
        train(SMALL, tmp_path / "run", plant)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_folder_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    """One run is stopped, its folder removed, another begins there, the first goes on."""
    folder = tmp_path / "run"

    def replace(status: Any) -> None:
        if status.update == 5 and status.note is None:
            shutil.rmtree(folder)
            stopped(folder, 4, changed(seed=1))
            replaced.append(snapshot(folder))

    replaced: list[Any] = []
    with pytest.raises(RefusedError, match="was removed or replaced while this run was training in it"):
        train(SMALL, folder, replace)
    assert snapshot(folder) == replaced[0]


def test_a_folder_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def remove(status: Any) -> None:
        if status.update == 5:
            shutil.rmtree(folder)

    with pytest.raises(RefusedError, match="was removed or replaced"):
        train(SMALL, folder, remove)
    assert not folder.exists()


_INTERRUPTED = """
import sys
from pathlib import Path
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training, train
run = Run(Adding(10), Model(hidden_size=8), Training(updates=10**6, batch_size=8, evaluate_every=10, evaluation_size=20,
          checkpoint_seconds=1e6, threads=1))
train(run, sys.argv[1], lambda status: print(status.update, flush=True))
"""


def test_an_interrupted_run_loses_nothing(tmp_path: Path) -> None:
    """Ctrl-C writes a checkpoint of the update under way before it ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 7:
            pass
        process.send_signal(signal.SIGINT)
        said = process.stdout.read().split()
        assert process.wait(60) == -signal.SIGINT or process.returncode == 1
        assert process.stderr is not None and "KeyboardInterrupt" in process.stderr.read()
    last = max((tmp_path / CHECKPOINTS).iterdir())
    assert int(last.name) == int(said[-1] if said else 7)


def test_a_second_interruption_ends_at_once_and_the_handler_is_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)

    def twice(status: Any) -> None:
        if status.update == 5:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
            raise AssertionError("it was not interrupted")

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path, twice)
    assert signal.getsignal(signal.SIGINT) is before
    assert train(SMALL, tmp_path)["outcome"] == "finished"
    assert signal.getsignal(signal.SIGINT) is before


def test_training_is_what_a_key_is_made_of() -> None:
    """Every option that is not beside the result changes the key when it changes."""
    base = Run(training=Training(schedule="steps", decay_at=(5,), optimizer="sgd"))
    for name, value in {"stop_patience": 3, "average_patience": 2, "decay_at": (6,), "clip": 0.5}.items():
        assert changed(base, **{name: value}).key() != base.key(), name


@dataclasses.dataclass(frozen=True)
class Measured(Adding):
    """A custom task whose result depends on an option that is free in the built-in ones."""

    data: str = "a.csv"
    scale: float = 1.0


@pytest.mark.parametrize("update", [6, None])
def test_a_custom_task_may_have_an_option_called_data(update: int | None, tmp_path: Path) -> None:
    first = dataclasses.replace(SMALL, task=Measured(10))
    if update is None:
        train(first, tmp_path)
    else:
        stopped(tmp_path, update, first)
    before = snapshot(tmp_path)
    other = dataclasses.replace(SMALL, task=Measured(10, data="b.csv"))
    with pytest.raises(RefusedError, match=r"contains another run: data is a\.csv, requested b\.csv"):
        train(other, tmp_path)
    assert snapshot(tmp_path) == before


def test_an_integer_for_a_float_is_the_same_run(tmp_path: Path) -> None:
    whole = changed(clip=1, lr=1)
    assert whole.key() == changed(clip=1.0, lr=1.0).key()
    assert (
        dataclasses.replace(SMALL, task=Measured(10, scale=2)).key()
        == dataclasses.replace(SMALL, task=Measured(10, scale=2.0)).key()
    )
    stopped(tmp_path, 4, whole)
    stopped(tmp_path, 6, changed(clip=1.0, lr=1.0))
    train(whole, tmp_path)
    train(changed(clip=1.0, lr=1.0), tmp_path / "float")
    assert result(tmp_path) == result(tmp_path / "float")


def test_options_with_another_key_are_refused(tmp_path: Path) -> None:
    """Nothing that is compared differs, but the run is another one."""
    stopped(tmp_path, 6)
    options = read_json(tmp_path / "options.json")
    write_json(tmp_path / "options.json", {**options, "key": "0" * 32})
    with pytest.raises(RefusedError, match=r"contains another run: the key in options\.json differs"):
        train(SMALL, tmp_path)


def test_the_last_evaluation_of_a_time_budget_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is between two others, and may end the run in another way: here nothing is learned."""
    hundredths = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(hundredths) / 100, monotonic=time.monotonic)
    monkeypatch.setattr("gatedrnn.lab.training.loop.time", clock)
    run = changed(budget_seconds=0.1, evaluate_every=20, stop_patience=1, lr=1e-30, checkpoint_seconds=1e6)
    record = train(run, tmp_path)
    assert record["outcome"] == "stopped_early" and 0 < record["updates"] < 20
    (tmp_path / "record.json").unlink()
    said: list[str] = []
    train(run, tmp_path, lambda status: said.append(status.note) if status.note else None)
    assert said == [f"resuming from update {record['updates']}"]
