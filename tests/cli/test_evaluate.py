"""``gatedrnn evaluate`` and ``gatedrnn generate`` on small runs."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console
from tests.lab.tasks.test_language import WORDS, own_text
from tests.lab.training.runs import SMALL, StopError, stop_at

from gatedrnn import LSTM
from gatedrnn.cli import main
from gatedrnn.cli.evaluate import _number, _table
from gatedrnn.lab.models import LanguageModel
from gatedrnn.lab.records import CHECKPOINTS
from gatedrnn.lab.tasks import OwnText
from gatedrnn.lab.training import Run, Training, train

OWN_TASK = Path(__file__).parents[2] / "examples" / "train_on_your_own_data.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text, two language models on it, fast and sigmoid, and a run on adding."""
    folder = tmp_path_factory.mktemp("runs")
    task = own_text(folder, test=12_000)
    training = Training(optimizer="sgd", lr=2.0, clip=0.25, batch_size=10, epochs=2, threads=1)
    for gate in ("fast", "sigmoid"):
        train(Run(task, LanguageModel(embedding_size=6, hidden_size=8, forget_gate=gate), training), folder / gate)
    train(SMALL, folder / "adding")
    return folder


def test_the_test_result_of_the_record_comes_out_again(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((runs / "fast" / "record.json").read_text())
    assert main(["evaluate", str(runs / "fast"), "--out", str(tmp_path / "new" / "found.json")]) == 0
    found = json.loads((tmp_path / "new" / "found.json").read_text())
    assert {name: found[name] for name in record["test"]} == record["test"]
    assert (found["task"], found["split"], found["dropped"]) == ("text", "test", 0)
    printed = capsys.readouterr().out
    assert f"{record['test']['perplexity']:.2f}" in printed and " … " in printed
    assert "11,999 words; the first word of the text is not predicted." in printed


def test_two_models_word_by_word(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", str(runs / "fast"), "--against", str(runs / "sigmoid")]
    assert main([*arguments, "--out", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    ratio = found["perplexity"] / found["against"]["perplexity"]
    assert f" {ratio:.4f} " in capsys.readouterr().out


def test_validation_a_checkpoint_and_other_counts(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = max((runs / "fast" / CHECKPOINTS).iterdir())
    assert main(["evaluate", str(last), "--split", "validation"]) == 0
    best = json.loads((runs / "fast" / "record.json").read_text())["validation"]["perplexity"]
    printed = capsys.readouterr().out
    assert f"{best:.2f}" in printed and "14 words are not evaluated" in printed
    assert main(["evaluate", str(last), "--frequencies", "all"]) == 0
    printed = capsys.readouterr().out
    # 30 words share 14,000 places: each occurs about 470 times in all files, 67 times in the training text.
    assert next(line for line in printed.splitlines() if line.startswith("under 100")).split()[2] != "–"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{adding}", "--split", "test"], "the task adding has no test data; use --split validation"),
        (["{adding}", "--split", "validation", "--data", "x"], ": --data is not an option of the task adding"),
        (["{fast}", "--frequencies", "none"], ": --frequencies must be one of train, all, got 'none'"),
        (["{fast}", "--out", "{runs}"], ": --out must be a file, but {runs} is a folder"),
        (
            ["{fast}", "--out", "{fast}/record.json/x"],
            ": cannot write to {fast}/record.json: {fast}/record.json is not a folder",
        ),
        (["{runs}"], "{runs} is neither the folder of a run nor one of its checkpoints"),
        (["{fast}", "--against", "{adding}", "--split", "validation"], "--against is for language models on test data"),
    ],
)
def test_what_cannot_be_evaluated(
    runs: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"runs": str(runs), "adding": str(runs / "adding"), "fast": str(runs / "fast")}
    assert main(["evaluate", *(argument.format(**places) for argument in arguments)]) == 2
    assert message.format(**places) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (12.345, "12.35"), (999_999.5, "999999.50"), (4.405966e290, "4.406e+290"), (math.inf, "inf")],
)
def test_numbers_of_any_size_are_readable(value: float | None, shown: str) -> None:
    assert _number(value) == shown


def test_numbers_are_whole_on_a_narrow_terminal() -> None:
    blocks = {"sums": {"loss": [1e4] * 20, "loss over 10,000": [1e4] * 20, "targets over 10,000": [20.0] * 20}}
    found = {"task": "text [red]", "split": "test", "bins": {}, "blocks": blocks}
    stream = io.StringIO()
    Console(file=stream, width=30).print(_table(found, {"blocks": blocks}), crop=False)
    number = f"{math.exp(500):.4g}"
    lines = [line for line in stream.getvalue().splitlines() if number in line]
    assert len(lines) == 2  # of the bin, and of all words
    for line in lines:
        assert line.split()[1:] == [number, number, "…", number, number, "1.0000", "1.0000", "…", "1.0000"]
    Console(file=stream, width=200).print(_table(found, None))
    assert "text [red], test" in stream.getvalue()


@pytest.mark.parametrize(("at", "given"), [(".", "{last}"), ("{last}", "."), ("{first}", "../{last}")])
def test_a_checkpoint_by_its_relative_path(
    at: str, given: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = runs / "adding" / CHECKPOINTS
    first, last = sorted(path.name for path in folder.iterdir())
    monkeypatch.chdir(folder / at.format(first=first, last=last))
    assert main(["evaluate", given.format(last=last), "--split", "validation"]) == 0
    assert main(["timescales", given.format(last=last)]) == 0
    assert "measured on data" in capsys.readouterr().out


def test_a_path_that_is_not_utf_8(runs: Path, tmp_path: Path) -> None:
    strange = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9"))
    strange.symlink_to(runs / "adding")
    out = tmp_path / "found.json"
    assert main(["evaluate", str(strange), "--split", "validation", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["checkpoint"] == f"{tmp_path}/caf\\udce9"
    weights = strange.with_name(f"{strange.name}.pt")
    with open(weights, "wb") as file:
        torch.save(LSTM(2, 4).state_dict(), file)
    options = ["--cell", "lstm", "--no-tied", "--forget-gate", "sigmoid"]
    assert main(["timescales", str(weights), *options, "--out", str(tmp_path / "scales")]) == 0


def test_help_says_which_weights_are_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["evaluate", "--help"])
    assert "Tasks without test data (adding, copy, tones) are evaluated on validation data, with the last weights" in (
        " ".join(capsys.readouterr().out.split())
    )


def test_adding_is_evaluated_on_validation(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    final = json.loads((runs / "adding" / "record.json").read_text())["final"]["mse"]
    for split in ([], ["--split", "validation"]):
        assert main(["evaluate", str(runs / "adding"), *split]) == 0
        printed = capsys.readouterr().out
        assert f"{final:.4g}" in printed and "adding, validation" in printed


def test_a_task_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epochs", "1", "--hidden-size", "4", "--batch-size", "50", "--threads", "1"]
    assert main(["train", str(OWN_TASK), "--out", str(tmp_path / "run"), *options]) == 0
    accuracy = json.loads((tmp_path / "run" / "record.json").read_text())["test"]["accuracy"]
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    printed = capsys.readouterr().err
    assert "unknown task 'waves'" in printed and "for a custom task, pass its file with --task" in printed
    assert main(["evaluate", str(tmp_path / "run"), "--task", str(OWN_TASK)]) == 0
    assert f" {accuracy:.4g} " in capsys.readouterr().out


def test_another_vocabulary_is_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = own_text(tmp_path)
    training = Training(optimizer="sgd", batch_size=10, epochs=1, threads=1, checkpoint_seconds=0)
    run = Run(task, LanguageModel(embedding_size=6, hidden_size=8), training)
    with pytest.raises(StopError):
        train(run, tmp_path / "run", stop_at(3))
    words = (tmp_path / "train.txt").read_text().replace("w7 ", "seven ")
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(words)
    for verb in ("evaluate", "generate"):
        assert main([verb, str(tmp_path / "run")]) == 2
        assert "was made with different data (vocabulary) than the task text reads now" in capsys.readouterr().err
    assert dataclasses.replace(task).corpus.words != task.corpus.words


def test_text_is_made(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for more in ([], ["--seed", "1"], ["--temperature", "0"], [], ["--temperature", "1e-100"]):
        assert main(["generate", str(runs / "fast"), "--prompt", "w3 w5", "--words", "12", *more]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[3] and texts[2] == texts[4] and len(set(texts)) == 3
    for text in texts:
        words = text.split()
        assert words[:2] == ["w3", "w5"] and set(words) <= set(WORDS)
        assert len(words) + text.count("\n") - 1 <= 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["{fast}", "--prompt", "w3 nothing"],
            "the vocabulary of the model does not have the word 'nothing' of --prompt",
        ),
        (["{adding}"], "is a run of the task adding, which is not a text task"),
        (["{fast}", "--words", "0"], "--words must be at least 1, got 0"),
        (["{fast}", "--temperature", "-1"], "--temperature must be 0 or at least 1e-100, got -1.0"),
        (["{fast}", "--temperature", "1e-310"], "--temperature must be 0 or at least 1e-100, got 1e-310"),
        (["{fast}", "--temperature", "nan"], "--temperature must be 0 or at least 1e-100, got nan"),
    ],
)
def test_what_cannot_be_generated(
    runs: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"adding": str(runs / "adding"), "fast": str(runs / "fast")}
    assert main(["generate", *(argument.format(**places) for argument in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_a_run_of_another_machine(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither its device nor what else it wrote is needed."""
    shutil.copytree(runs / "adding", tmp_path / "run")
    path = tmp_path / "run" / "options.json"
    options = json.loads(path.read_text())
    options["training"] |= {"device": "cuda:7", "tensorboard": True}
    path.write_text(json.dumps(options))
    assert main(["evaluate", str(tmp_path / "run"), "--split", "validation"]) == 0
    printed = capsys.readouterr()
    record = json.loads((runs / "adding" / "record.json").read_text())
    assert f"{record['final']['mse']:.4g}" in printed.out
    assert printed.err == "warning: the device cuda:7 is not available; using cpu\n"


@pytest.mark.parametrize("verb", ["evaluate", "generate"])
def test_a_relative_path_from_another_folder(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_text(tmp_path)
    monkeypatch.chdir(tmp_path)
    task = OwnText(bptt=12, train="train.txt", valid="valid.txt", test="test.txt")
    training = Training(optimizer="sgd", batch_size=10, updates=1, threads=1)
    train(Run(task, LanguageModel(embedding_size=6, hidden_size=8), training), "run")
    assert main([verb, "run"]) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "run")
    assert main([verb, str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        "gatedrnn: train.txt cannot be read: No such file or directory; a relative path is relative to the folder in "
        "which the run was trained: run the command there\n"
    )


def test_a_missing_file_by_its_whole_path_has_no_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = Training(optimizer="sgd", batch_size=10, updates=1, threads=1)
    train(Run(own_text(tmp_path), LanguageModel(embedding_size=6, hidden_size=8), training), tmp_path / "run")
    (tmp_path / "valid.txt").unlink()
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    expected = f"gatedrnn: {tmp_path}/valid.txt cannot be read: No such file or directory\n"
    assert capsys.readouterr().err == expected


def test_an_option_of_another_version(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(runs / "adding", tmp_path / "run")
    path = tmp_path / "run" / "options.json"
    options = json.loads(path.read_text())
    options["training"]["lookahead"] = 5
    path.write_text(json.dumps(options))
    assert main(["evaluate", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.startswith(
        f"gatedrnn: another version of gatedrnn may have written {path}: unknown option 'lookahead' of Training; known "
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("arguments", [["evaluate"], ["generate", "--words", "3"], ["timescales"]])
def test_a_full_output_is_no_wrong_argument(arguments: list[str], runs: Path) -> None:
    command = [sys.executable, "-m", "gatedrnn.cli", *arguments, str(runs / "fast")]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr) == (1, "gatedrnn: [Errno 28] No space left on device\n")


def test_results_that_a_full_disk_does_not_take(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, content: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("gatedrnn.files.write_through", full)
    out = tmp_path / "found.json"
    assert main(["evaluate", str(runs / "adding"), "--out", str(out)]) == 1
    assert capsys.readouterr().err.startswith(f"gatedrnn: cannot write to {out}: [Errno 28] No space left on device")


def test_control_characters_of_a_text_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Letters of any language do: a zero-width non-joiner is a letter of Persian words."""
    words = ["\x1b[2J", "می\u200cشود", "bell\x07", "naïve"]
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(" ".join(words * 30) + "\n", encoding="utf-8")
    files = {split: str(tmp_path / f"{split}.txt") for split in ("train", "valid", "test")}
    training = Training(optimizer="sgd", batch_size=2, updates=1, threads=1)
    train(Run(OwnText(bptt=5, **files), LanguageModel(embedding_size=6, hidden_size=8), training), tmp_path / "run")
    assert main(["generate", str(tmp_path / "run"), "--prompt", " ".join(words), "--words", "40"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("\\x1b[2J می\u200cشود bell\\x07 naïve ") and printed.count("\\x1b[2J") > 1
    assert "\x1b" not in printed and "\x07" not in printed
