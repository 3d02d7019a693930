"""A custom task from a file, run and resumed without a change to the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatedrnn.cli import main
from gatedrnn.cli.own_task import load_task
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import read_run
from gatedrnn.lab.training import Run, Training, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_on_your_own_data.py"
OPTIONS = ["--lr", "0.01", "--batch-size", "50", "--hidden-size", "8", "--threads", "1"]


def _curve(folder: Path) -> list[dict[str, object]]:
    return [{name: value for name, value in line.items() if name != "seconds"} for line in read_run(folder).metrics]


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 60


def test_from_the_command_line_and_from_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two epochs, then two more, give what Python gives in one go."""
    for epochs in ("2", "4"):
        assert main(["train", str(EXAMPLE), "--epochs", epochs, "--out", str(tmp_path / "cli"), *OPTIONS]) == 0
    assert "test accuracy" in capsys.readouterr().out
    task = load_task(EXAMPLE)()
    run = Run(task, Model(hidden_size=8), Training(lr=0.01, batch_size=50, epochs=4, threads=1))
    stopped = 0

    def stop_once(status: object) -> None:
        nonlocal stopped
        if getattr(status, "update", 0) == 23 and not stopped:
            stopped = 1
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(run, tmp_path / "python", stop_once)
    record = train(run, tmp_path / "python")
    assert _curve(tmp_path / "python") == _curve(tmp_path / "cli")
    assert record["test"] == (read_run(tmp_path / "cli").record or {})["test"]
    assert read_run(tmp_path / "cli").options["task"] == {"name": "waves", "noise": 0.5}


def test_its_options_are_those_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(EXAMPLE), "--noise", "-1", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "gatedrnn: --noise must be at least 0, got -1.0\n"
    assert not (tmp_path / "run").exists()


_TASK = "from gatedrnn.lab.tasks import Adding\nclass One(Adding):\n    name = 'one'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"own\.py does not exist"),
        ("1 / 0", r"own\.py cannot be imported: ZeroDivisionError: division by zero"),
        ("from gatedrnn.lab.tasks import Adding", r"own\.py must define one task, .*; found: none"),
        (f"{_TASK}class Two(One): pass", r"own\.py must define one task, .*; found: One, Two"),
        (
            _TASK.replace("'one'", "'copy'"),
            r"own\.py: the name 'copy' is taken by a built-in task; choose another name",
        ),
    ],
)
def test_files_that_define_no_task(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text)
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) in (1, 2)
    assert re.fullmatch(rf"gatedrnn: .*{message}\n", capsys.readouterr().err)
    assert not (tmp_path / "run").exists()
