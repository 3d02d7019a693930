"""Random options with nasty values: no command ends in a traceback, none succeeds with nonsense."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import gatedrnn
from gatedrnn import cli, gates, inits, theory
from gatedrnn.bench import bars, engine, report, suites
from gatedrnn.cli import demo
from gatedrnn.cli.sweep import Pool
from gatedrnn.cli.verbs import VERBS
from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import TASKS
from gatedrnn.lab.training import OPTIMIZERS, SCHEDULES, Training
from gatedrnn.layers import LAYERS

pytestmark = pytest.mark.slow

WHOLE = [
    "0",
    "1",
    "2",
    "3",
    "16",
    "-1",
    "1_0",
    "１",
    "10000000000000",
    "99999999999999999999999",
    "9" * 400,
    "9" * 5000,
]
FLOATS = [
    "0",
    "1",
    "0.5",
    "1e-3",
    "-0.5",
    "1e38",
    "-1e300",
    "nan",
    "inf",
    "-inf",
    "1e300",
    "1e-300",
    "1e400",
    "1e-400",
    "0x1",
]
WORDS = [
    "", " ", "-", "--", "---", "=", "a=b", "None", "True", "false", "[]", "{}", "%s", "$HOME", "[red]", "é", "φ", "🎲",
    "\udcff", "\n", "\x1b[31m", "\x00", "x" * 10_000, "../..", "/dev/null", "--lr", "-h=1", "*", ",", ",,", "0,1", "fast,fast",
]  # fmt: skip
NAMES = {
    "cell": LAYERS, "forget_gate": gates.GATES, "forget_init": inits.INITS, "optimizer": OPTIMIZERS, "schedule": SCHEDULES,
    "engine": ["auto", "cpu", "reference"], "autocast": ["bfloat16", "float16"], "budget": BUDGETS, "gates": gates.GATES,
    "device": ["cpu", "cpu:3", "cuda", "meta", "mkldnn", "privateuseone"], "suite": ["targets", "engine", "paper", "sweep", "quick"],
}  # fmt: skip
HELP = -1
#: Whose large values are right, and would take hours or all cores.
SMALL = {"updates": ["1", "2", "0", "-1", "nan", "9" * 30], "threads": ["1", "2", "0", "-1", "1025", "9" * 30]}
TINY = [
    "--length", "4", "--hidden-size", "3", "--batch-size", "2", "--updates", "1", "--evaluation-size", "2", "--threads", "1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_case_hangs() -> Iterator[None]:
    def hang(*_: object) -> None:
        raise TimeoutError("this took a minute")

    before = signal.signal(signal.SIGALRM, hang)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], int]:
    """Runs a command in an empty folder and checks how it ended."""
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")

    def run(arguments: list[str]) -> int:
        signal.alarm(60)
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code  # type: ignore[assignment]
            assert code == 0 and "usage: gatedrnn" in capsys.readouterr().out  # help
            return HELP
        printed = capsys.readouterr()
        assert code in (0, 1, 2) and "Traceback" not in printed.err
        if code:
            last = printed.err.splitlines()[-1]
            assert last.startswith("gatedrnn: ") and last.removeprefix("gatedrnn: ").strip()
        return code

    return run


def _value(draw: random.Random, field: dataclasses.Field[Any] | None = None) -> str:
    """Often of the kind that the field takes: what is refused at once tells little."""
    if field is not None and draw.random() < 0.75:
        kind = str(field.type)
        fitting = NAMES.get(field.name) or (WHOLE if "int" in kind else FLOATS if "float" in kind else WORDS)
        return draw.choice(SMALL.get(field.name, list(fitting)))
    if field is not None and field.name in SMALL:
        return draw.choice(SMALL[field.name])
    return draw.choice(draw.choice([WHOLE, FLOATS, WORDS, *map(list, NAMES.values())]))


def _options(draw: random.Random, kinds: list[Any]) -> list[str]:
    """Some of the options of these dataclasses with some values."""
    fields = [field for kind in kinds for field in dataclasses.fields(kind)]
    written = []
    for field in draw.sample(fields, min(len(fields), draw.choice([1, 2, 3, 4]))):
        option = draw.choice([f"--{field.name.replace('_', '-')}", f"--{field.name}"])
        value = _value(draw, field)
        if "bool" in str(field.type) and draw.random() < 0.9:
            written.append(draw.choice([option, option.replace("--", "--no-", 1)]))
        else:
            written += draw.choice([[option, value]] * 5 + [[f"{option}={value}"], [option], [option, value, value]])
    return written


def _expected(arguments: list[str]) -> dict[str, str]:
    """The values that were written for the options, the last of each."""
    found = {}
    for first, second in itertools.pairwise(arguments):
        if first.startswith("--"):
            name, equals, value = first[2:].partition("=")
            found[name.replace("-", "_")] = value if equals else second
    return found


@pytest.mark.parametrize("seed", range(300))
def test_train(seed: int, tmp_path: Path, run: Callable[[list[str]], int]) -> None:
    draw = random.Random(seed)
    task = draw.choice(list(TASKS))
    out = tmp_path / "out"
    arguments = ["train", task, *TINY, *_options(draw, [TASKS[task], Model, Training]), "--out", str(out)]
    if run(arguments) != 0:
        assert not out.exists(), arguments
        return
    options = json.loads((out / "options.json").read_text(encoding="utf-8"))
    record = json.loads((out / "record.json").read_text(encoding="utf-8"))
    assert record["outcome"] in ("finished", "target_reached", "budget_spent", "diverged")
    taken: dict[str, Any] = {**options["task"], **options["model"], **options["training"]}
    for name, text in _expected(arguments).items():  # what was accepted has its effect
        if isinstance(taken.get(name), str):
            assert taken[name] == text
        elif isinstance(taken.get(name), int | float) and not isinstance(taken[name], bool):
            assert taken[name] == float(text)


def _damaged(draw: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(draw.choice([1, 1, 4, 40])):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data[: draw.choice([len(data), len(data), draw.randrange(len(data))])])


@pytest.mark.parametrize("seed", range(300))
def test_timescales_of_damaged_files(seed: int, tmp_path: Path, run: Callable[[list[str]], int]) -> None:
    draw = random.Random(seed)
    torch.manual_seed(0)
    cell = draw.choice(["gru", "lstm", "fastgrnn"])
    tied: dict[str, Any] = {"tied": True} if cell == "lstm" else {}
    layer = LAYERS[cell](2, 3, forget_gate="fast", **tied)  # type: ignore[call-arg]
    path = tmp_path / draw.choice(["w.pt", "w.safetensors"])
    if path.suffix == ".pt":
        torch.save(
            {"epoch": 3, "state_dict": layer.state_dict()}, path, _use_new_zipfile_serialization=draw.random() < 0.5
        )
    else:
        safetensors.torch.save_file(layer.state_dict(), path)
    path.write_bytes(_damaged(draw, path.read_bytes()))
    run(["timescales", str(path), "--cell", cell, "--forget-gate", "fast", *(["--tied"] if tied else [])])


@pytest.fixture
def _no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands would do for minutes is left out; the arguments are checked as ever."""
    nothing: Callable[..., Any] = lambda *arguments, **options: []  # noqa: E731
    monkeypatch.setattr(theory, "run", nothing)
    monkeypatch.setattr(Pool, "go", nothing)
    monkeypatch.setattr(bars, "run_bars", lambda *arguments: ([], []))
    monkeypatch.setattr(engine, "run_engine", lambda *arguments: ([], []))
    for suite in ("paper", "sweep", "quick"):
        monkeypatch.setattr(suites, suite, nothing)
    monkeypatch.setattr(report, "write", nothing)
    monkeypatch.setattr(report, "markdown", lambda *arguments: "")
    monkeypatch.setattr(
        demo, "_train", lambda *arguments: {name: [{"update": 0, "mse": 1.0}] for name in ("sigmoid", "fast")}
    )
    monkeypatch.setattr(demo, "_report", lambda runs, out: out)


@pytest.mark.usefixtures("_no_work")
@pytest.mark.parametrize("seed", range(300))
def test_every_other_command(seed: int, tmp_path: Path, run: Callable[[list[str]], int]) -> None:
    draw = random.Random(seed)
    torch.save(gatedrnn.GRU(2, 3).state_dict(), tmp_path / "weights.pt")
    verb = draw.choice([name for name in VERBS if name != "train"])
    places = [str(tmp_path / name) for name in ("out", "weights.pt", "weights.pt/below", "é\n\udcff", "x" * 300)]
    names = [field.name for field in dataclasses.fields(VERBS[verb])]  # type: ignore[arg-type]
    arguments = [verb]
    if "label" in names:
        arguments.append(draw.choice([*EXPERIMENTS, *EXPERIMENTS, *WORDS]))
    if "runs" in names or "checkpoint" in names:
        arguments.append(draw.choice([*places, *WORDS]))
    arguments += _options(draw, [VERBS[verb]]) if draw.random() < 0.7 else []
    if "out" in names and draw.random() < 0.8:
        arguments += ["--out", draw.choice(places)]
    run(arguments)


@pytest.mark.parametrize("seed", range(200))
def test_anything_at_all(seed: int, run: Callable[[list[str]], int]) -> None:
    draw = random.Random(seed)
    words = [*VERBS, *TASKS, "--help", "--version", "--out", "--tied", "--length"]
    arguments = [draw.choice([draw.choice(words), _value(draw)]) for _ in range(draw.randrange(6))]
    if not {"demo", "theory", "sweep", "bench"} & set(arguments[:1]):  # these would work for minutes
        run(arguments)
