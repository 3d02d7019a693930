"""``gatedrnn timescales``: of our checkpoints, and of other people's weights."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import safetensors.torch
import torch

import gatedrnn
from gatedrnn import cli

SCALE = -1 / math.log(1 / (1 + math.exp(-1)))  # of the forget bias 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    options = "--length 10 --hidden-size 8 --num-layers 2 --batch-size 4 --updates 2 --evaluation-size 5 --threads 1"
    assert cli.main(["train", "adding", *options.split(), "--out", str(out)]) == 0
    return out


def _printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, list[float]]:
    """The numbers of the table by layer."""
    assert cli.main(["timescales", *arguments]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:] if line and not line.startswith("timesc")]
    return {row[0]: [float(number) for number in row[1:]] for row in rows}


@pytest.mark.parametrize("below", ["", "checkpoints/00000002", "checkpoints/00000002/weights.safetensors"])
def test_our_checkpoints_say_what_they_are(run: Path, below: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = _printed([str(run / below)], capsys)
    record = json.loads((run / "record.json").read_text())
    for layer in ("l0", "l1"):
        (
            units,
            mean,
            *_,
        ) = table[layer]
        assert units == 8
        assert mean == pytest.approx(record["time_scales"][layer]["mean"], rel=1e-3)


def test_a_drawing_and_the_numbers(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _printed([str(run), "--out", str(tmp_path / "made" / "here")], capsys)
    out = tmp_path / "made" / "here"
    assert sorted(path.name for path in out.iterdir()) == ["timescales.json", "timescales.png", "timescales.svg"]
    written = json.loads((out / "timescales.json").read_text())["layers"]["l1"]
    assert len(written["values"]) == 8
    assert written["mean"] == pytest.approx(sum(written["values"]) / 8)
    assert "l1: 8 units" in (out / "timescales.svg").read_text()


class Other(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 2)
        self.rnn = torch.nn.LSTM(2, 6, num_layers=2, bidirectional=True)
        with torch.no_grad():
            for name, parameter in self.rnn.named_parameters():
                if name.startswith("bias"):
                    parameter.zero_()[6:12] = 0.5  # both biases: their sum is 1


@pytest.mark.parametrize("kind", ["safetensors", "pt", "pth", "nested"])
def test_other_weights_with_what_the_options_say(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, state = tmp_path / f"weights.{'pt' if kind == 'nested' else kind}", Other().state_dict()
    if kind == "safetensors":
        safetensors.torch.save_file(state, path)
    else:
        torch.save({"epoch": 3, "state_dict": state} if kind == "nested" else state, path)
    table = _printed([str(path), "--cell", "lstm", "--no-tied", "--forget-gate", "sigmoid"], capsys)
    prefix = "state_dict.rnn" if kind == "nested" else "rnn"
    assert set(table) == {f"{prefix}.{key}" for key in ("l0", "l0_reverse", "l1", "l1_reverse")}
    assert table[f"{prefix}.l1_reverse"][:2] == [6, pytest.approx(SCALE, rel=1e-3)]


@pytest.mark.parametrize("cell", ["gru", "janet", "ugrnn", "minimal_rnn", "fastgrnn", "mgu"])
@pytest.mark.parametrize("gate", ["fast", "refine"])
def test_every_cell_with_a_forget_gate(
    cell: str, gate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = gatedrnn.layers.LAYERS[cell]
    layer = kind(3, 5, forget_gate=gate, forget_init=gatedrnn.inits.Constant(0.9))  # type: ignore[call-arg]
    torch.save(layer.state_dict(), tmp_path / "w.pt")
    table = _printed([str(tmp_path / "w.pt"), "--cell", cell, "--forget-gate", gate], capsys)
    assert table == {
        "l0": [
            5,
            *[pytest.approx(-1 / math.log(0.9), rel=1e-3)],
            pytest.approx(0, abs=1e-3),
            *[pytest.approx(9.491, rel=1e-3)] * 5,
        ]
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "does not say what model it belongs to; missing: --cell, --forget-gate"),
        (["--cell", "lstm", "--forget-gate", "fast"], "missing: --tied or --no-tied"),
        (["--cell", "gru"], "missing: --forget-gate"),
        (["--cell", "elman", "--forget-gate", "fast"], "cell must be one of lstm, gru"),
        (["--cell", "nru", "--forget-gate", "fast"], "forget_gate is for lstm"),
        (
            ["--cell", "lstm", "--tied", "--forget-gate", "fast"],
            "not the sizes of a tied lstm with the gate fast: bias_hh_l0 (24,)",
        ),
        (["--cell", "mgu", "--forget-gate", "refine"], "no weights of a layer with the cell mgu and the gate refine"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(Other().state_dict(), tmp_path / "w.pt")
    assert cli.main(["timescales", str(tmp_path / "w.pt"), *options]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and message in printed.err and printed.out == ""


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_what_are_no_weights(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text("nothing of the kind")
    options = ["--cell", "gru", "--forget-gate", "fast"]
    for path in (tmp_path / name, tmp_path / "absent", tmp_path):
        assert cli.main(["timescales", str(path), *options]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_would_run_code_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Harm:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "harm",))

    torch.save({"weight_ih_l0": Harm()}, tmp_path / "w.pt")
    assert cli.main(["timescales", str(tmp_path / "w.pt"), "--cell", "gru", "--forget-gate", "fast"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "harm").exists()


def test_options_that_contradict_the_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["timescales", str(run), "--forget-gate", "sigmoid"]) == 2
    assert "--forget-gate is sigmoid, but" in capsys.readouterr().err


def test_the_nru_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--length 10 --cell nru --hidden-size 8 --batch-size 4 --updates 1 --evaluation-size 5 --threads 1"
    assert cli.main(["train", "adding", *options.split(), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert cli.main(["timescales", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "gatedrnn: NRU has no forget gate, and so no time scales\n"
