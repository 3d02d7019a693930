"""A finished run is extended to a longer one with the same bits; what cannot be extended is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.records import CHECKPOINTS, read_run
from gatedrnn.lab.training import RefusedError, Run, train

from .runs import SMALL, StopError, changed, result, snapshot, stopped
from .toy import IMAGES


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (SMALL, changed(updates=60)),
        (changed(updates=25), changed(updates=60)),  # evaluated at its end, where the longer one is not
        (changed(updates=5), changed(updates=60)),  # no checkpoint but that of the end
        (changed(schedule="steps", decay_at=(20, 40)), changed(schedule="steps", decay_at=(20, 40), updates=60)),
        (changed(schedule="plateau", patience=1), changed(schedule="plateau", patience=1, updates=60)),
        (IMAGES, changed(IMAGES, epochs=7)),
    ],
)
def test_a_finished_run_is_extended_to_the_bits_of_the_longer_one(short: Run, long: Run, tmp_path: Path) -> None:
    train(long, tmp_path / "long")
    first = train(short, tmp_path / "run", declared={"grid": "g"})
    stopped(tmp_path / "run", first["updates"] + 3, long)  # and killed on the way
    record = train(long, tmp_path / "run")
    assert result(tmp_path / "run") == result(tmp_path / "long")
    options = read_run(tmp_path / "run").options
    assert options["key"] == long.key() == record["key"] and options["extends"] == [short.key()]
    assert options["declared"] == {"grid": "g"}
    assert train(long, tmp_path / "run") == record


def test_a_run_extended_twice_keeps_its_own_checkpoints(tmp_path: Path) -> None:
    """The ends of the shorter runs, between two evaluations, have higher numbers than its first checkpoints."""
    longest = changed(updates=60)
    train(longest, tmp_path / "long")
    for updates in (23, 27):
        train(changed(updates=updates, checkpoint_seconds=1e9), tmp_path / "run")
    said: list[str] = []

    def progress(status: Any) -> None:
        said.extend([status.note] if status.note else [])
        if status.update == 13 and not status.note:
            raise StopError

    with pytest.raises(StopError):
        train(longest, tmp_path / "run", progress)
    assert said == [
        "the shorter run ended at update 27, between two evaluations of this one; its checkpoint was removed",
        "resuming from update 0",
    ]
    assert sorted(int(path.name) for path in (tmp_path / "run" / CHECKPOINTS).iterdir()) == [11, 12]
    del said[:]
    train(longest, tmp_path / "run", lambda status: said.append(status.note) if status.note else None)
    assert said[-1] == "resuming from update 12"
    assert result(tmp_path / "run") == result(tmp_path / "long")


def test_a_damaged_record_of_a_run_that_was_extended(tmp_path: Path) -> None:
    train(SMALL, tmp_path)
    train(changed(updates=60), tmp_path)
    (tmp_path / "record.json").write_text("{")
    said: list[str] = []
    train(changed(updates=60), tmp_path, lambda status: said.append(status.note) if status.note else None)
    assert said == ["resuming from update 60", "record.json was damaged and is written again"]


def test_a_run_killed_while_it_is_extended(tmp_path: Path) -> None:
    long = changed(updates=60)
    train(long, tmp_path / "long")
    train(SMALL, tmp_path / "run")
    old = (tmp_path / "run" / "record.json").read_bytes()
    stopped(tmp_path / "run", 31, long)
    (tmp_path / "run" / "record.json").write_bytes(old)  # as if killed before it was removed
    said: list[str] = []
    train(long, tmp_path / "run", lambda status: said.append(status.note) if status.note else None)
    assert said == ["resuming from update 30"]
    assert result(tmp_path / "run") == result(tmp_path / "long")


@pytest.mark.parametrize(
    ("short", "long", "message"),
    [
        (changed(schedule="cosine"), changed(schedule="cosine", updates=60),
         "contains a shorter run that cannot be extended: the learning rate of the schedule cosine depends on the length"),
        (changed(updates=60), SMALL, "contains a longer run: updates is 60, requested 30"),
        (SMALL, changed(updates=60, lr=0.5), "contains another run: lr is 0.001, requested 0.5"),
        (changed(IMAGES, updates=9, epochs=None, evaluate_every=1), IMAGES, "contains a run whose length is in updates, not in epochs"),
    ],
)  # fmt: skip
def test_what_cannot_be_extended_is_refused(short: Run, long: Run, message: str, tmp_path: Path) -> None:
    train(short, tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(RefusedError, match=message):
        train(long, tmp_path)
    assert snapshot(tmp_path) == before


def test_an_end_by_an_evaluation_that_the_longer_run_does_not_make_is_not_its_end(tmp_path: Path) -> None:
    """The short run is evaluated at its last update, between two evaluations of the longer one."""
    options = {"evaluate_every": 2, "stop_patience": 2, "lr": 0.3, "clip": None}
    short, long = changed(updates=3, **options), changed(updates=8, **options)
    assert train(short, tmp_path / "run")["outcome"] == "stopped_early"
    whole = train(long, tmp_path / "whole")
    train(long, tmp_path / "run")
    assert result(tmp_path / "run") == result(tmp_path / "whole")
    assert (whole["outcome"], whole["updates"]) == ("stopped_early", 4)
