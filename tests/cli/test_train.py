"""``gatedrnn train``: what it does, prints and refuses."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from rich.console import Console

from gatedrnn import cli
from gatedrnn.cli.training_progress import shown, summary
from gatedrnn.engines.cpu.library import take
from gatedrnn.lab.models import LanguageModel, Model
from gatedrnn.lab.records import read_run
from gatedrnn.lab.tasks import TASKS, Adding
from gatedrnn.lab.training import OPTIMIZERS, SCHEDULES, Run, Status, Training
from gatedrnn.layers import LAYERS

SMALL = [
    "--length", "10", "--hidden-size", "8", "--batch-size", "4", "--updates", "4", "--evaluate-every", "2",
    "--evaluation-size", "5", "--threads", "1",
]  # fmt: skip


def _train(out: Path, *more: str, task: str = "adding") -> int:
    return cli.main(["train", task, *SMALL, *more, "--out", str(out)])


def test_the_options_of_a_command_are_those_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "train adding --cell lstm --tied --forget-gate fast --forget-init constant --length 12 --hidden-size 9 "
        "--batch-size 3 --optimizer rmsprop --lr 1e-2 --clip 1 --updates 2 --evaluation-size 4 --seed 5 --target 1e-9 "
        f"--budget-seconds 500 --threads 1 --device cpu --autocast bfloat16 --out {tmp_path / 'run'}"
    )
    assert cli.main(command.split()) == 0
    options = read_run(tmp_path / "run").options
    assert options["task"] == {"name": "adding", "length": 12}
    model, training = options["model"], options["training"]
    assert (model["tied"], model["forget_gate"], model["forget_init"], model["hidden_size"]) == (
        True,
        "fast",
        "constant",
        9,
    )
    assert (training["lr"], training["clip"], training["seed"], training["updates"]) == (0.01, 1.0, 5, 2)
    assert (training["target"], training["budget_seconds"], training["autocast"]) == (1e-9, 500.0, "bfloat16")
    printed = capsys.readouterr()
    assert printed.out.startswith("finished after 2 updates in ") and str(tmp_path / "run") in printed.out
    assert "update 0/2  mse " in printed.err and "update 2/2  loss " in printed.err  # plain lines: this is no terminal


def test_defaults_and_untied_and_chrono(tmp_path: Path) -> None:
    assert _train(tmp_path / "a") == 0
    model = read_run(tmp_path / "a").options["model"]
    assert (model["cell"], model["tied"], model["forget_gate"], model["forget_init"]) == (
        "lstm",
        True,
        "fast",
        "constant",
    )
    assert _train(tmp_path / "b", "--no-tied", "--forget-init", "chrono", task="copy") == 0
    found = read_run(tmp_path / "b")
    assert found.options["model"]["tied"] is False
    scales = found.metrics[0]["time_scales"]["l0"]["quantiles"]
    assert 1 < scales["0.05"] < scales["0.95"] < 15  # t_max = 3·10/2


def test_the_same_command_reports_a_finished_run_and_another_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train(tmp_path / "run") == 0
    first = capsys.readouterr().out
    assert _train(tmp_path / "run") == 0
    assert capsys.readouterr().out == first
    assert _train(tmp_path / "run", "--lr", "0.5") == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert "contains another run: lr is 0.001, requested 0.5" in printed.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--length", "1"], "--length must be between 2 and 1000000000, got 1"),
        (["--lr", "-1"], "--lr must be between 1e-30 and 1e+20, got -1.0"),
        (["--forget-gate", "quick"], "--forget-gate must be one of sigmoid, softsign, fast, "),
        (["--forget-init", "zeros"], "--forget-init must be one of constant, chrono, "),
        (
            ["--optimizer", "adam", "--momentum", "0.9"],
            "--momentum is for the optimizer rmsprop, sgd, not for adam, got 0.9",
        ),
        (["--optimizer", "lbfgs"], "--optimizer must be one of rmsprop, adam, adamw, sgd, got 'lbfgs'"),
        (["--cell", "gru", "--tied"], "--tied is for lstm, not for the cell gru, got True"),
        (["--cell", "elman"], "--cell must be one of lstm, gru, "),
        (["--hidden-size", "0"], "--hidden-size must be between 1 and 1000000, got 0"),
        (["--engine", "graph"], "--engine must be one that can run this, got 'graph'"),
        (["--device", "cuda:99"], "--device must be one that torch can use here (cpu"),
        (["--device", "privateuseone"], "--device must be one that torch can use here (cpu"),
        (["--heads", "0"], "--heads is for nru, not for the cell lstm, got 0"),
        (["--memory-size", "0"], "--memory-size is for nru, not for the cell lstm, got 0"),
        (["--lr", "1e300"], "--lr must be between 1e-30 and 1e+20, got 1e+300"),
        (["--weight-decay", "1e300"], "--weight-decay must be 0 or between 1e-30 and 1e+10, got 1e+300"),
        (
            ["--evaluation-size", "10000000000000"],
            "--evaluation-size must be between 1 and 1000000000, got 10000000000000",
        ),
        (
            ["--length", "1000000000"],
            "--batch-size 4 with sequences of 1000000000 steps needs 160 GB of memory or more, this machine has ",
        ),
        (
            ["--length", "9" * 400, "--forget-init", "chrono"],
            f"--length must be between 2 and 1000000000, got {'9' * 400}",
        ),
    ],
)
def test_impossible_options(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train(tmp_path / "out", *options) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"gatedrnn: {message}")
    assert printed.err.count("\n") == 1 and printed.out == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif("tensorboard" in sys.modules, reason="tensorboard is there")
def test_tensorboard_that_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "tensorboard" else find(name))
    assert _train(tmp_path / "out", "--tensorboard") == 2
    assert capsys.readouterr().err == "gatedrnn: --tensorboard needs the package tensorboard: pip install tensorboard\n"


def test_a_file_as_folder_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert _train(tmp_path / "file" / "below") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert _train(tmp_path / "file") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("best", [None, 123.456])
def test_a_summary_of_a_test_that_is_not_finite(best: float | None, tmp_path: Path) -> None:
    record = {
        "metric": "perplexity", "outcome": "diverged", "diverged_at": 0, "updates": 0, "seconds": 0.0,
        "final": {"perplexity": None}, "validation": {"perplexity": best, "epoch": 0.0}, "test": {"perplexity": None},
    }  # fmt: skip
    validation = "not finite" if best is None else "123.5"
    assert summary(record, tmp_path) == (
        f"diverged at update 0 in 0.0 s; validation perplexity {validation} at epoch 0, test perplexity not finite; "
        f"the record is in {tmp_path}"
    )


def test_a_damaged_record_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _train(tmp_path / "run") == 0
    first = capsys.readouterr().out
    path = tmp_path / "run" / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "outcome": None}))
    assert _train(tmp_path / "run") == 0
    printed = capsys.readouterr()
    assert printed.out == first and "record.json was damaged and is written again" in printed.err


def test_a_text_that_json_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.txt")
    files = ["--train", strange, "--valid", strange, "--test", strange]
    assert cli.main(["train", "text", *files, "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == f"gatedrnn: --train must be text in UTF-8, got '{tmp_path}/caf\\udce9.txt'\n"
    assert not (tmp_path / "run").exists()


def test_the_files_of_a_text_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(r"--train STR File to train on; [^(]*\(required\)", _help(capsys, "train", "text"))
    assert cli.main(["train", "text", "--out", "x", "--train", "a", "--valid", "b"]) == 2
    assert capsys.readouterr().err == "gatedrnn: train text needs --test STR; see gatedrnn train text --help\n"


def _help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The help as one line: how it is wrapped depends on the terminal."""
    with pytest.raises(SystemExit, match="0"):
        cli.main([*arguments, "--help"])
    return " ".join(word for word in capsys.readouterr().out.split() if word != "│")


@pytest.mark.parametrize("task", TASKS)
def test_help_shows_every_option_with_its_documentation(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown_text = _help(capsys, "train", task)
    own = [field.name for field in dataclasses.fields(TASKS[task])]
    model = LanguageModel if TASKS[task].tokens else Model
    parts = [[field.name for field in dataclasses.fields(options)] for options in (model, Training)]
    for part in (*parts, ["out", "no_tied", *own]):
        for option in part:
            assert f"--{option.replace('_', '-')}" in shown_text
    assert "Learning rate." in shown_text and "Number of hidden units" in shown_text


def test_help_says_what_the_tasks_are(capsys: pytest.CaptureFixture[str]) -> None:
    shown_text = _help(capsys, "train")
    for name, task in TASKS.items():
        assert f" {name} {(task.__doc__ or '').splitlines()[0]}" in shown_text


def _told(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The defaults in the help by option."""
    text = re.sub("[─-]{3,}", "", _help(capsys, "train", "adding"))
    found = re.findall(r"--([a-z0-9-]+)(?:, --no-[a-z-]+)? (?:(?! --).)*?\(default: (.*?)\)", text)
    return {option.replace("-", "_"): default for option, default in found}


def test_help_shows_the_defaults_that_the_options_take(capsys: pytest.CaptureFixture[str]) -> None:
    told = _told(capsys)
    assert "None" not in told.values()
    for field in (*dataclasses.fields(Adding), *dataclasses.fields(Model), *dataclasses.fields(Training)):
        if field.default is not None:
            assert told.pop(field.name) == str(field.default)
    owners = [
        *(Training(optimizer=name) for name in OPTIMIZERS),
        *(Training(schedule=name) for name in SCHEDULES),
        *(Model(cell=name) for name in LAYERS),
    ]
    filled = set()
    for options in owners:
        for field in dataclasses.fields(options):
            value = getattr(options, field.name)
            if field.default is None and value not in (None, ()):
                first, *others = told[field.name].split("; ")
                names = dict(other.split(": ") for other in others)  # "0; adamw: 0.01"
                said = names.get(getattr(options, "optimizer", ""), first)
                expected = {True: "tied"}.get(value, value)
                assert said == str(expected) or float(said) == expected
                filled.add(field.name)
    told = {name: default for name, default in told.items() if name not in filled}
    assert told == {
        "epochs": "the length is in updates",
        "evaluation_size": "1000",
        "target": "no target",
        "stop_patience": "never",
        "average_patience": "never",
        "head_size": "no hidden layer",
        "encoder_size": "no encoder",
        "budget_seconds": "no limit",
        "monitor": "with speech and tones",
        "threads": "torch's number",
        "processes": "the number started",
        "autocast": "off",
    }


def test_a_full_disk_ends_in_one_line(tmp_path: Path) -> None:
    """No file may grow beyond 2 kB: the first checkpoint does not fit."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))\n"
        "from gatedrnn.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "train", "adding", *SMALL, "--out", str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.returncode == 1, ended.stderr  # the arguments are right
    last = ended.stderr.splitlines()[-1]
    assert (
        last.startswith("gatedrnn: cannot write to ") and "File too large" in last and "Traceback" not in ended.stderr
    )
    assert _train(tmp_path / "run") == 0
    assert json.loads((tmp_path / "run" / "record.json").read_text(encoding="utf-8"))["resumed"] == 1


@pytest.mark.parametrize("hold", [lambda: torch.empty(2**60), lambda: bytearray(2**62), lambda: take(2**60)])
def test_memory_that_cannot_be_had_ends_in_one_line(
    hold: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gatedrnn.cli.train.train", lambda *arguments: hold())
    assert _train(tmp_path / "out") == 1
    assert capsys.readouterr().err == (
        "gatedrnn: out of memory: choose a smaller --batch-size or --hidden-size or shorter sequences, and another --out\n"
    )


def test_progress_on_a_terminal_shows_loss_metric_speed_and_time_left() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    with shown(Run(), console) as progress:
        progress(Status(5, 20000, 0.123, {"mse": 0.456}, 7.5, 61.0, evaluated=True))
        progress(Status(5, 20000, 0.123, {"mse": 0.456}, 7.5, 61.0, note="something to say"))
    drawn = stream.getvalue()
    for text in ("5/20000", "loss 0.123", "mse 0.456", "7.5 updates/s", "0:01:01 left", "something to say"):
        assert text in drawn


def test_a_metric_is_shown_as_it_is_named() -> None:
    class Marked(Adding):
        metric = "mse [bold]"

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    with shown(Run(Marked()), console) as progress:
        progress(Status(5, 20, 0.123, {"mse [bold]": 0.456}, None, None, evaluated=True))
    assert "mse [bold] 0.456" in stream.getvalue()


def test_an_interrupted_run_says_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gatedrnn.cli.train.train", interrupted)
    assert cli.main(["train", "adding", "--length", "9", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("stopped; run the same command to resume\ninterrupted\n")
