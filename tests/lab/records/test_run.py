from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatedrnn.lab.records import find_runs, read_run

OPTIONS = {"schema": 1, "kind": "gatedrnn run", "task": {"name": "adding"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "options.json").write_text(json.dumps(OPTIONS))
    (tmp_path / "metrics.jsonl").write_text('{"update": 0}\n{"update": 50}\n')
    return tmp_path


def test_a_run_that_has_not_ended(folder: Path) -> None:
    found = read_run(folder)
    assert found.options == OPTIONS
    assert found.metrics == [{"update": 0}, {"update": 50}]
    assert found.record is None and found.environment is None and found.warnings == []


def test_a_run_that_has_ended(folder: Path) -> None:
    record = {"schema": 1, "kind": "gatedrnn record", "outcome": "finished"}
    environment = {"schema": 1, "kind": "gatedrnn environment", "torch": "2.4"}
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "environment.json").write_text(json.dumps(environment))
    found = read_run(folder)
    assert found.record == record and found.environment == environment


@pytest.mark.parametrize("torn", ['{"update": 100, "lo', '{"update": 100}', "\x00\x00\x00\n"])
def test_a_torn_line_is_left_out_and_said(folder: Path, torn: str) -> None:
    with open(folder / "metrics.jsonl", "a") as file:
        file.write(torn)
    found = read_run(folder)
    assert found.metrics == [{"update": 0}, {"update": 50}]
    (warning,) = found.warnings
    assert "line 3 is incomplete" in warning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1,', "options.json is damaged"),
        ("[]", "not a JSON object"),
        ('{"schema": 2, "kind": "gatedrnn run"}', "version 2 of the format; this gatedrnn reads version 1"),
        ('{"name": "other"}', "expected a 'gatedrnn run', got None"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(folder: Path, text: str, message: str) -> None:
    (folder / "options.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_run(folder)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_run(tmp_path)


def test_runs_are_found_below(tmp_path: Path) -> None:
    for name in ("b/seed1", "a", "b/seed0"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "options.json").write_text("{}")
    assert find_runs(tmp_path) == [tmp_path / "a", tmp_path / "b/seed0", tmp_path / "b/seed1"]


def test_missing_metrics_of_a_run_that_has_ended(folder: Path) -> None:
    (folder / "record.json").write_text(json.dumps({"kind": "gatedrnn record", "schema": 1}))
    (folder / "metrics.jsonl").unlink(missing_ok=True)
    assert read_run(folder).warnings == [f"{folder / 'metrics.jsonl'} is missing; the run is shown without curves"]
    (folder / "record.json").unlink()
    assert read_run(folder).warnings == []
