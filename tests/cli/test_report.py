"""``gatedrnn report``: where it writes, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.report.records import write_run

from gatedrnn import cli


def test_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a", "fast", 0, evaluations=4)
    with (tmp_path / "runs" / "a" / "metrics.jsonl").open("a") as file:
        file.write('{"update": 2')
    out = tmp_path / "made" / "here"
    assert cli.main(["report", str(tmp_path / "runs"), "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"report: {out / 'index.html'}\n"
    assert "warning: a: metrics.jsonl: line 5 is incomplete" in printed.err
    assert "adding, length=300" in printed.err  # progress
    assert {path.name for path in out.iterdir()} == {"index.html", "report.md", "report.json", "figures"}
    assert "not run" in (out / "report.md").read_text()


def ends(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """One line, exit code 2."""
    assert cli.main(["report", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "out"
    for name in ("empty", "missing", "file"):
        assert str(tmp_path / name) in ends([str(tmp_path / name), "--out", str(out)], capsys)
    (tmp_path / "empty" / "options.json").write_text("{")
    assert "no readable run" in ends([str(tmp_path / "empty"), "--out", str(out)], capsys)
    assert not out.exists()


def test_an_output_folder_that_holds_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a", "fast", 0, evaluations=4)
    before = sorted((tmp_path / "runs").rglob("*"))
    assert "which is not part of a report" in ends([str(tmp_path / "runs"), "--out", str(tmp_path / "runs")], capsys)
    assert sorted((tmp_path / "runs").rglob("*")) == before
    (tmp_path / "file").write_text("mine")
    for below in ("", "folder"):
        assert "is not a folder" in ends([str(tmp_path / "runs"), "--out", str(tmp_path / "file" / below)], capsys)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [(["report"], "RUNS, --out PATH"), (["report", "runs"], "--out PATH"), (["report", "--out", "x"], "RUNS")],
)
def test_missing_arguments(arguments: list[str], missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"gatedrnn: report needs {missing}; see gatedrnn report --help\n"
