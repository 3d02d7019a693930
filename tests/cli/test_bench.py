"""gatedrnn bench from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatedrnn.bench.check import WrongResultError
from gatedrnn.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["--shapes", "adding"], "--shapes is for --suite paper, not for --suite targets"),
        (["--suite", "paper", "--shapes", "adding,subtracting"], "--shapes must be among adding, copy, psmnist,"),
    ],
)
def test_wrong_options_end_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["bench", "--out", str(out), *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and said in lines[0]
    assert not out.exists()


def test_the_quick_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--suite", "quick", "--rounds", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "gatedrnn lstm fast tied cpu" in printed and f"are in {tmp_path}" in printed
    assert (tmp_path / "bench.json").exists()


def test_a_wrong_result_is_no_wrong_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*_: object) -> None:
        raise WrongResultError("output is off by 0.1; the benchmark was stopped")

    monkeypatch.setattr("gatedrnn.bench.bars.run_bars", wrong)
    assert main(["bench", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "gatedrnn: output is off by 0.1; the benchmark was stopped\n"
