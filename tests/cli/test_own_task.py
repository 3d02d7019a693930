"""A custom task from a file, run and resumed without a change to the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lab.training.runs import snapshot

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
        (
            "from gatedrnn.lab.tasks import Task\nclass One(Task):\n    def check(self): pass\n    def loss(self): pass\n",
            r"own\.py: One must define .*measure, output_size, splits.*",
        ),
        (f"{_TASK}class Two(One): pass", r"own\.py must define one task, .*; found: One, Two"),
        (
            _TASK.replace("'one'", "'copy'"),
            r"own\.py: the name 'copy' is taken by a built-in task; choose another name",
        ),
        (_TASK.replace("'one'", "5"), r"own\.py: One\.name must be a string, got 5"),
        (
            EXAMPLE.read_text().replace('"waves", "accuracy", False', '"waves", 0, False'),
            r"own\.py: Waves\.metric must be a string, got 0",
        ),
        (
            EXAMPLE.read_text().replace('name, metric, lower_is_better = "waves", "accuracy", False', 'name = "waves"'),
            r"own\.py: Waves\.metric must be a string, got none",
        ),
        (
            EXAMPLE.read_text().replace("@dataclass(frozen=True)", ""),
            r"own\.py: the task Waves must be a dataclass; write @dataclass\(frozen=True\) before it",
        ),
        (
            EXAMPLE.read_text().replace("noise:", "lr: float = 1.0\n    noise:"),
            r"own\.py: the field 'lr' is taken by the option --lr; choose another name",
        ),
        (
            EXAMPLE.read_text().replace("noise:", "out: str = ''\n    noise:"),
            r"own\.py: the field 'out' is taken by the option --out; choose another name",
        ),
        (
            EXAMPLE.read_text().replace("noise:", "seen: bytes = b'x'\n    noise:"),
            r"--seen must be a number, a string, a path, true or false, None, or a list of these, got b'x'",
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


def _changed(path: Path, *changes: tuple[str, str]) -> Path:
    """The example with some text replaced."""
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def _train(path: Path, out: Path, *more: str) -> int:
    return main(["train", str(path), "--epochs", "1", "--out", str(out), *OPTIONS, *more])


def test_a_metric_that_is_not_measured_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _changed(tmp_path / "own.py", ('"waves", "accuracy"', '"waves", "score"'))
    assert _train(path, tmp_path / "run") == 2
    expected = "gatedrnn: the metric 'score' of the task waves is not among its measures: loss, accuracy\n"
    assert capsys.readouterr().err == expected


def test_the_hint_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _changed(tmp_path / "my task.py")
    assert main(["train", str(path), "--noise", "loud", "--out", "x"]) == 2
    expected = f"gatedrnn: --noise must be a number, got 'loud'; see gatedrnn train '{path}' --help\n"
    assert capsys.readouterr().err == expected


def test_an_error_in_the_code_of_a_task_has_a_traceback(tmp_path: Path) -> None:
    """Not one line that looks like a wrong option; with evaluate too."""
    path = _changed(tmp_path / "own.py")
    assert _train(path, tmp_path / "whole") == 0
    _changed(path, ("return class_measures(output, target)", "loss, accuracy = 1, 2, 3"))
    for arguments in (["train", str(path), "--out", str(tmp_path / "run")],
                      ["evaluate", str(tmp_path / "whole"), "--task", str(path)]):  # fmt: skip
        with pytest.raises(ValueError, match="too many values to unpack") as raised:
            main(arguments)
        assert raised.traceback[-1].path == path


def test_a_file_of_the_task_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.csv"
    path = _changed(tmp_path / "own.py", ("        waves, labels = self.waves", f"        open({str(missing)!r})"))
    assert _train(path, tmp_path / "run") == 1
    assert capsys.readouterr().err == f"gatedrnn: cannot open {missing}: No such file or directory\n"


def test_a_path_is_an_option_of_a_task(tmp_path: Path) -> None:
    """Written as text and read back as a path: the run is resumed and evaluated."""
    field = "file: Path = Path('x.csv')\n    noise:"
    imports = "from pathlib import Path\nfrom functools import cached_property"
    check = "assert isinstance(self.file, Path)\n        if self.noise < 0"
    changes = (("noise:", field), ("from functools import cached_property", imports), ("if self.noise < 0", check))
    path = _changed(tmp_path / "own.py", *changes)
    for epochs in ("1", "2"):
        assert _train(path, tmp_path / "run", "--file", "a/b.csv", "--epochs", epochs) == 0
    assert read_run(tmp_path / "run").options["task"] == {"name": "waves", "file": "a/b.csv", "noise": 0.5}
    assert main(["evaluate", str(tmp_path / "run"), "--task", str(path)]) == 0


def test_measures_of_different_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mean loss beside the accuracy of each sample: the accuracy would be a hundred times too large."""
    mean = "return class_measures(output, target) | {'loss': class_loss(output, target)}"
    path = _changed(tmp_path / "own.py", ("return class_measures(output, target)", mean))
    assert _train(path, tmp_path / "run") == 2
    assert capsys.readouterr().err == (
        "gatedrnn: the task waves must measure the loss and 'accuracy' of the same samples, got 1 value of the loss and "
        "100 values of 'accuracy'\n"
    )


def test_a_measure_with_the_name_of_a_field_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The metric before anything is written; what is measured beside it with the first evaluation."""
    expected = "gatedrnn: the task waves cannot call a measure 'lr', because records and results of evaluate have a "
    metric = _changed(tmp_path / "own.py", ('"waves", "accuracy"', '"waves", "lr"'))
    assert _train(metric, tmp_path / "run") == 2
    assert capsys.readouterr().err.startswith(expected) and not (tmp_path / "run").exists()
    more = "return {**(found := class_measures(output, target)), 'lr': found['loss']}"
    beside = _changed(tmp_path / "own.py", ("return class_measures(output, target)", more))
    assert _train(beside, tmp_path / "run") == 2
    assert capsys.readouterr().err.startswith(expected)


def test_a_finished_run_says_that_the_file_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _changed(tmp_path / "own.py")
    assert _train(path, tmp_path / "run") == 0
    first = capsys.readouterr().out
    _changed(path, ("Recognise which", "Say which"))
    assert _train(path, tmp_path / "run") == 0
    printed = capsys.readouterr()
    assert printed.out == first
    expected = "the file of the task has changed since this run ended; this is the result of the version before\n"
    assert printed.err == expected


def test_a_training_set_of_another_size_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the finished run stays."""
    path = _changed(tmp_path / "own.py")
    assert _train(path, tmp_path / "run") == 0
    before = snapshot(tmp_path / "run")
    _changed(path, ("return Epochs(500,", "return Epochs(400,"))
    assert _train(path, tmp_path / "run", "--epochs", "2") == 2
    expected = (
        "was made with different data (400 samples, before 500) than the task waves reads now; use the same data\n"
    )
    assert expected in capsys.readouterr().err
    assert snapshot(tmp_path / "run") == before
