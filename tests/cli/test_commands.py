"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from gatedrnn import cli, gates, inits
from gatedrnn.cli.failure import Failure
from gatedrnn.cli.parsing import parse
from gatedrnn.cli.progress import shown
from gatedrnn.cli.verbs import VERBS
from gatedrnn.lab import tasks
from gatedrnn.lab.experiments import EXPERIMENTS, OWN


def test_list_names_everything_that_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    printed = capsys.readouterr().out
    first_words = {line.split(" ")[0] for line in printed.splitlines()}
    sweeps = {label for label, item in {**EXPERIMENTS, **OWN}.items() if not item.theory}
    assert first_words >= {*gates.GATES, *inits.INITS, *tasks.TASKS, *sweeps}
    assert not any(label in printed for label, item in EXPERIMENTS.items() if item.theory)  # sweep refuses them
    assert "0.881374" in printed  # the fast gate's bias with φ(b) = σ(1)


def test_theory_with_chosen_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "here"
    assert cli.main(["theory", "--out", str(out), "--gates", "softsign, refine"]) == 0
    printed = capsys.readouterr()
    assert str(out) in printed.out
    lines = printed.err.splitlines()
    assert len(lines) > 10  # progress, in plain lines because this is no terminal
    assert "refine: adam" in printed.err
    assert len(list(out.iterdir())) == 10
    assert "| refine |" in (out / "tab_gates_comparison.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--help"])
    assert ended.value.code == 0
    assert f"gatedrnn {verb}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gatedrnn {importlib.metadata.version('gatedrnn')}\n"


COMMANDS = f"choose from {', '.join(VERBS)}; see gatedrnn --help"
TASKS = f"choose from {', '.join(tasks.TASKS)}; see gatedrnn train --help"
ADDING = "see gatedrnn train adding --help"
WRONG = {
    "": f"missing command; {COMMANDS}",
    "nonsense": f"unknown command 'nonsense'; {COMMANDS}",
    "trian adding --out x --length 5": f"unknown command 'trian'; {COMMANDS}",
    "--out x train adding": f"missing command before --out; {COMMANDS}",
    "theory": "theory needs --out PATH; see gatedrnn theory --help",
    "list --colour red": "unrecognized arguments: --colour, red; see gatedrnn list --help",
    "list adding": "unrecognized arguments: adding; see gatedrnn list --help",
    "sweep": "sweep needs LABEL, --out PATH; see gatedrnn sweep --help",
    "report --out x": "report needs RUNS; see gatedrnn report --help",
    "bench --out x --suite long": "--suite must be one of 'targets', 'engine', 'paper', 'sweep', 'quick', got 'long'; "
    "see gatedrnn bench --help",
    "train": f"missing task; {TASKS}",
    "train ading": f"unknown task 'ading'; {TASKS}",
    "train ading --out x --length 5": f"unknown task 'ading'; {TASKS}",
    "train --length 5 adding --out x": f"missing task before --length; {TASKS}",
    "train adding": f"train adding needs --out PATH; {ADDING}",
    "train adding --out x --length abc": f"--length must be an integer, got 'abc'; {ADDING}",
    "train adding --out x --length 1.5": f"--length must be an integer, got '1.5'; {ADDING}",
    f"train adding --out x --length {'9' * 5000}": f"--length must have at most 4300 digits; {ADDING}",
    "train adding --out x --lr small": f"--lr must be a number, got 'small'; {ADDING}",
    "train adding --out x --heads None": f"--heads must be an integer, got 'None'; {ADDING}",
    "train adding --out x --target low": f"--target must be a number, got 'low'; {ADDING}",
    "train adding --out x --clip off": f"--clip must be a number or None, got 'off'; {ADDING}",
    "train adding --out x --decay-at a": f"--decay-at must be integers, got 'a'; {ADDING}",
    "train adding --out x --length": f"--length needs a value; {ADDING}",
    "train adding --out x --tied False": f"unrecognized arguments: False; {ADDING}",
    "train adding --out x --lenght 5": f"unrecognized arguments: --lenght, 5; perhaps you meant --length; {ADDING}",
    "train adding --out x --gate fast": f"unrecognized arguments: --gate, fast; perhaps you meant --forget-gate; {ADDING}",
    "train adding --lenght 5": "train adding needs --out PATH; unrecognized arguments: --lenght, 5; "
    f"perhaps you meant --length; {ADDING}",
    "data": "missing command; choose from list, fetch, verify; see gatedrnn data --help",
    "data fetch": "data fetch needs NAME; see gatedrnn data fetch --help",
    "data fetch --date x": "data fetch needs NAME; see gatedrnn data fetch --help",
}


@pytest.mark.parametrize("columns", ["40", "200"])
@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_arguments_end_in_one_line(
    arguments: str, columns: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments.split()) == 2
    printed = capsys.readouterr()
    assert printed.err == f"gatedrnn: {WRONG[arguments]}\n"
    assert printed.out == "" and not list(tmp_path.iterdir())


@dataclass(frozen=True)
class _Even:
    size: int = 2

    def __post_init__(self) -> None:
        if self.size % 2:
            raise ValueError(f"size must be even, got {self.size}")


@dataclass(frozen=True)
class _Whole:
    part: _Even


def test_an_error_of_the_options_themselves_is_passed_on() -> None:
    assert parse(_Whole, ["--part.size", "4"], ["--part.size"]) == _Whole(_Even(4))
    with pytest.raises(Failure, match=r"^size must be even, got 3; see gatedrnn --help$"):
        parse(_Whole, ["--part.size", "3"], ["--part.size"])


@pytest.mark.parametrize("names", ["fast,nope", "nope", ",", "fast,fast"])
def test_wrong_gates_end_in_one_line(names: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["theory", "--out", str(tmp_path / "out"), "--gates", names]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    if names != "fast,fast":
        assert ", ".join(gates.GATES) in printed.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["theory", "demo"])
@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_as_folder_ends_in_one_line(
    verb: str, below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    assert cli.main([verb, "--out", str(tmp_path / "file" / below)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@contextlib.contextmanager
def _unprivileged() -> Iterator[None]:
    """As somebody who may not write everywhere, should these tests be run by root."""
    # Now, because the other user may not be allowed to read the sources; torch imports its compiler on first use.
    import torch._dynamo  # noqa: F401

    from gatedrnn import theory  # noqa: F401

    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("command", ["theory --out {}/out", "train adding --updates 1 --length 9 --out {}/out"])
def test_a_folder_without_permission_ends_in_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o500)
    try:
        with _unprivileged():
            assert cli.main(command.format(tmp_path).split()) == 2
    finally:
        tmp_path.chmod(0o700)
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and "permission" in printed.lower() and "resume" not in printed


def test_a_new_run_in_a_folder_that_can_only_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:  # those above tmp_path are root's alone
        os.chmod(folder, 0o555)
        with _unprivileged():
            assert cli.main(f"train adding --updates 1 --length 9 --out {folder}/out".split()) == 2
    message = f"gatedrnn: cannot write to {folder}/out: no permission to write in {folder}\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("work", "arguments"),
    [
        ("gatedrnn.lab.report.make_report", ["report", "{out}", "--out", "{out}/report"]),
        ("gatedrnn.theory.run", ["theory", "--gates", "fast", "--out", "{out}/theory"]),
        ("gatedrnn.cli.sweep.Pool.go", ["sweep", "fig:adding_mse", "--budget", "smoke", "--out", "{out}"]),
        ("gatedrnn.cli.demo.Sweep.go", ["demo", "--out", "{out}/demo"]),
    ],
)
def test_a_full_disk_is_work_that_failed(
    work: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not a wrong argument."""

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(work, full)
    assert cli.main([argument.format(out=tmp_path) for argument in arguments]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("[Errno 28] No space left on device")


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("gatedrnn.cli.verbs.dispatch", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("missing", ["tyro", "rich", "matplotlib", "scipy", "numpy"])
def test_without_the_extra_one_line_names_it(missing: str, tmp_path: Path) -> None:
    code = (
        "import sys, warnings\n"
        "warnings.simplefilter('ignore')\n"  # torch warns when numpy is not there
        f"sys.modules[{missing!r}] = None\n"
        "import gatedrnn\n"
        "from gatedrnn.cli import main\n"
        f"sys.exit(main(['theory', '--out', {str(tmp_path / 'out')!r}]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert 'pip install ".[lab]" in a clone of gatedrnn' in ended.stderr
    assert missing in ended.stderr


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_work_without_the_extra(argument: str) -> None:
    code = f"import sys; sys.modules['tyro'] = None; from gatedrnn.cli import main; sys.exit(main([{argument!r}]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    version = f"gatedrnn {importlib.metadata.version('gatedrnn')}\n"
    assert (
        ended.stdout == version
        if argument == "--version"
        else 'pip install ".[lab]" in a clone of gatedrnn' in ended.stdout
    )


def test_progress_on_a_terminal_is_a_bar() -> None:
    stream = io.StringIO()
    with shown(Console(file=stream, force_terminal=True, width=80, _environ={"TERM": "xterm"})) as report:
        report(1, 4, "half way")
        report(4, 4, "done")
    assert "4/4" in stream.getvalue()


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_progress_on_a_terminal_that_cannot_draw_is_plain_lines(term: str) -> None:
    stream = io.StringIO()
    with shown(Console(file=stream, force_terminal=True, width=80, _environ={"TERM": term})) as report:
        report(1, 4, "half way")
        report(4, 4, "done")
    assert stream.getvalue() == "  1/4   0.0 s  half way\n  4/4   0.0 s  done\n"


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_no_bars_are_drawn_into_a_file(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, "1")
    with shown() as report:
        report(1, 4, "half way")
    assert capsys.readouterr().err == "  1/4   0.0 s  half way\n"
