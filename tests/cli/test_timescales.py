"""``gatedrnn timescales``: of our checkpoints, and of other people's weights."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

import gatedrnn
from gatedrnn import cli
from gatedrnn.cli import timescales
from gatedrnn.lab import models
from gatedrnn.lab.records import write_checkpoint

SCALE = -1 / math.log(1 / (1 + math.exp(-1)))  # of the forget bias 1


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    options = "--length 10 --hidden-size 8 --num-layers 2 --batch-size 4 --updates 2 --evaluation-size 5 --threads 1"
    assert cli.main(["train", "adding", *options.split(), "--out", str(out)]) == 0
    return out


def _tables(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict[str, list[float]]]:
    """The numbers of the tables by layer."""
    assert cli.main(["timescales", *arguments]) == 0
    tables = capsys.readouterr().out.split("timescales.json")[0].strip().split("\n\n")
    rows = [[line.split() for line in table.splitlines()[1:]] for table in tables]
    return [{row[0]: [float(number) for number in row[1:]] for row in table} for table in rows]


def _printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, list[float]]:
    return _tables(arguments, capsys)[0]


@pytest.mark.parametrize("below", ["", "checkpoints/00000002", "checkpoints/00000002/weights.safetensors"])
def test_our_checkpoints_say_what_they_are(run: Path, below: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = _printed([str(run / below)], capsys)
    record = json.loads((run / "record.json").read_text(encoding="utf-8"))
    for layer in ("l0", "l1"):
        (
            units,
            mean,
            *_,
        ) = table[layer]
        assert units == 8
        assert mean == pytest.approx(record["time_scales"][layer]["mean"], rel=1e-3)


def test_measured_on_the_data_of_the_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, measured = _tables([str(run), "--out", str(tmp_path)], capsys)
    recorded = json.loads((run / "record.json").read_text(encoding="utf-8"))["measured_time_scales"]
    written = json.loads((tmp_path / "timescales.json").read_text(encoding="utf-8"))["layers"]
    for layer in ("l0", "l1"):
        assert measured[layer][1] == pytest.approx(recorded[layer]["mean"], rel=1e-3)
        assert written[layer]["measured"]["mean"] == pytest.approx(recorded[layer]["mean"], rel=1e-6)
        assert len(written[layer]["measured"]["values"]) == 8
    assert len(_tables([str(run), "--no-measure"], capsys)) == 1


def test_numbers_and_names_are_whole_on_a_narrow_terminal(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = _tables([str(run)], capsys)
    for columns in ("60", "20"):
        monkeypatch.setenv("COLUMNS", columns)
        assert cli.main(["timescales", str(run)]) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        layers = [(row[0], [float(number) for number in row[1:]]) for row in rows if row[:1] in (["l0"], ["l1"])]
        assert layers == [row for table in wide for row in table.items()]


def test_without_its_data_it_says_so(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, tmp_path / "run")
    options = json.loads((run / "options.json").read_text(encoding="utf-8"))
    options["task"]["name"] = "mine"
    (tmp_path / "run" / "options.json").write_text(json.dumps(options), encoding="utf-8")
    assert cli.main(["timescales", str(tmp_path / "run" / "checkpoints" / "00000002")]) == 0
    found = capsys.readouterr()
    assert "measured" not in found.out and "l0" in found.out
    assert "warning: not measured on data: unknown task 'mine'" in found.err
    assert "for a custom task, pass its file with --task" in found.err


def test_a_warning_of_several_lines(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*arguments: object, **options: object) -> object:
        raise ValueError("no data\nput it here:\n  a\x1b")

    monkeypatch.setattr(timescales, "opened", missing)
    assert cli.main(["timescales", str(run)]) == 0
    assert capsys.readouterr().err == "warning: not measured on data: no data\nput it here:\n  a\\x1b\n"


def test_a_drawing_and_the_numbers(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _printed([str(run), "--out", str(tmp_path / "made" / "here")], capsys)
    out = tmp_path / "made" / "here"
    assert sorted(path.name for path in out.iterdir()) == ["timescales.json", "timescales.png", "timescales.svg"]
    written = json.loads((out / "timescales.json").read_text(encoding="utf-8"))["layers"]["l1"]
    assert len(written["values"]) == 8
    assert written["mean"] == pytest.approx(sum(written["values"]) / 8)
    assert "l1: 8 units" in (out / "timescales.svg").read_text(encoding="utf-8")


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
        ([], "does not name its model; missing: --cell, --forget-gate"),
        (["--cell", "lstm", "--forget-gate", "fast"], "missing: --tied or --no-tied"),
        (["--cell", "gru"], "missing: --forget-gate"),
        (["--cell", "elman", "--forget-gate", "fast"], "gatedrnn: --cell must be one of lstm, gru"),
        (["--cell", "nru", "--forget-gate", "fast"], "gatedrnn: --forget-gate is for lstm"),
        (
            ["--cell", "lstm", "--tied", "--forget-gate", "fast"],
            "do not match a tied lstm with the gate fast (weight_hh_l0 has shape (24, 6), expected (24, 8)); check --cell, --forget-gate and --tied; found bias_hh_l0 (24,)",
        ),
        (["--cell", "mgu", "--forget-gate", "refine"], "found no layer with the cell mgu and the gate refine"),
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
    (tmp_path / name).write_text("nothing of the kind", encoding="utf-8")
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


def _refused(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The one line that says why."""
    assert cli.main(["timescales", str(path), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err.removeprefix(f"gatedrnn: {path}").strip()


GRU = ("--cell", "gru", "--forget-gate", "fast")


def test_torchs_advice_to_load_it_anyway_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"weight_ih_l0": torch.nn.Linear(1, 1)}, tmp_path / "module.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated
        torch.jit.script(torch.nn.Linear(1, 1)).save(tmp_path / "script.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "module.pt").read_bytes()[:-50])
    (tmp_path / "pickle.pt").write_bytes(b"\x80\x04K\x01.")
    for name in ("module.pt", "script.pt", "cut.pt", "pickle.pt"):
        line = _refused(tmp_path / name, capsys, *GRU)
        assert line.startswith("cannot be read as weights: ") and len(line) < 300
        assert "weights_only" not in line and "trust" not in line
    assert _refused(tmp_path / "module.pt", capsys, *GRU) == (
        "cannot be read as weights: it holds more than tensors and plain values, or is damaged; nothing in it was run"
    )


def _nested(levels: int) -> dict[str, object]:
    content: dict[str, object] = gatedrnn.GRU(2, 3, forget_gate="fast").state_dict()
    for _ in range(levels):
        content = {"in": content}
    return content


def test_structures_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cyclic: dict[str, object] = {}
    cyclic["itself"] = {"again": cyclic, "and": cyclic}
    doubled: dict[str, object] = {"w": torch.zeros(1)}
    for _ in range(40):  # 2⁴⁰ names for one tensor
        doubled = {"a": doubled, "b": doubled}
    for name, content in {"cyclic": cyclic, "doubled": doubled, "deep": _nested(200)}.items():
        torch.save(content, tmp_path / f"{name}.pt")
        line = _refused(tmp_path / f"{name}.pt", capsys, *GRU)
        assert line == "cannot be read as weights: it has more than 50 levels or 100000 entries, or contains itself"
    torch.save(_nested(20), tmp_path / "deep.pt")
    assert list(_printed([str(tmp_path / "deep.pt"), *GRU], capsys)) == [".".join(["in"] * 20) + ".l0"]


def test_a_name_that_two_tensors_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"a": {"b": torch.zeros(1)}, "a.b": torch.ones(1)}, tmp_path / "w.pt")
    assert _refused(tmp_path / "w.pt", capsys, *GRU) == "cannot be read as weights: two tensors have the name a.b"


@pytest.mark.parametrize(
    ("name", "tensor", "reason"),
    [
        ("weight_ih_l0", torch.zeros(9), "weight_ih_l0 and weight_hh_l0 must be matrices"),
        ("weight_hh_l0", torch.zeros(()), "weight_ih_l0 and weight_hh_l0 must be matrices"),
        ("weight_hh_l0", torch.zeros(0, 3), "hidden_size"),
        ("weight_hh_l0", torch.zeros(9, 4), "weight_hh_l0 has shape (9, 4), expected (9, 3)"),
        (
            "weight_hh_l0",
            torch.zeros(1).expand(3 * 10**6, 10**6),
            "weight_ih_l0 has shape (9, 2), expected (3000000, 2)",
        ),
        ("bias_ih_l0", torch.zeros(9, dtype=torch.int64), "bias_ih_l0 is not an array of floating-point numbers"),
        ("bias_ih_l0", torch.zeros(9).to_sparse(), "bias_ih_l0 is not an array of floating-point numbers"),
        ("weight_hh_l1", torch.zeros(9, 3), "weight_ih_l1 is missing"),
    ],
)
def test_weights_that_are_no_weights_of_the_cell(
    name: str, tensor: torch.Tensor, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({**gatedrnn.GRU(2, 3).state_dict(), name: tensor}, tmp_path / "w.pt")
    line = _refused(tmp_path / "w.pt", capsys, *GRU)
    assert line.startswith("gatedrnn: the weights do not match a gru with the gate fast (") and reason in line


def test_biases_that_are_not_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = gatedrnn.GRU(2, 3, forget_gate="fast")
    with torch.no_grad():
        layer.bias_ih_l0.fill_(float("nan"))
    torch.save({"a\nb": layer.state_dict()}, tmp_path / "w.pt")
    line = _refused(tmp_path / "w.pt", capsys, *GRU)
    assert line == "gatedrnn: the forget biases of 3 of the 3 units of a\\nb.l0 are NaN"


def test_infinite_and_vanishing_time_scales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = gatedrnn.JANET(2, 5, forget_gate="fast", forget_init=gatedrnn.inits.Constant(0.9))
    with torch.no_grad():
        layer.bias_hh_l0.zero_()
        layer.bias_ih_l0[0] = -1e9  # φ is 0
        layer.bias_ih_l0[3:5] = 1e9  # φ is 1
    torch.save({"$a$": layer.state_dict(), "b[red]": layer.state_dict()}, tmp_path / "w.pt")
    options = ["--cell", "janet", "--forget-gate", "fast", "--out", str(tmp_path / "out")]
    assert cli.main(["timescales", str(tmp_path / "w.pt"), *options]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["$a$.l0", "b[red].l0"]
    #         units  mean   std  5 %  25 %     50 %     75 %   95 %
    assert rows[0][1:] == ["5", "inf", "–", rows[0][4], "9.491", "9.491", "inf", "inf"]
    assert 0 <= float(rows[0][4]) < 9.491
    written = json.loads((tmp_path / "out/timescales.json").read_text(encoding="utf-8"))["layers"]["$a$.l0"]
    assert (written["units"], written["infinite"]) == (5, 2)
    assert written["quantiles"]["0.5"] == pytest.approx(9.491, rel=1e-3) and written["quantiles"]["0.95"] is None
    assert "5 units, 1 zero, 2 infinite" in (tmp_path / "out/timescales.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("{", "damaged model metadata: Expecting"),
        ("[" * 100_000, "damaged model metadata: "),
        ("[1]", "damaged model metadata: not a JSON object"),
        ("{}", "written in version None; this gatedrnn reads version 1"),
        ({"schema": 2}, "written in version 2; this gatedrnn reads version 1"),
        ({"input_size": "two"}, "damaged model metadata: input_size is 'two'"),
        ({"input_size": 10**400}, "damaged model metadata: input_size is 1000"),
        ({"last": 0}, "damaged model metadata: last is 0"),
        ({"input_size": 3}, "its weights are not those of its model: layer.weight_ih_l0 has shape (24, 2), expected (24, 3)"),
        ({"model": None}, "damaged model metadata: "),
        ({"model": {"size": 8}}, "damaged model metadata: "),
        ({"model": {"cell": ["lstm"]}}, "damaged model metadata: cell must be a string, got ('lstm',)"),
        ({"model": {"hidden_size": "8"}}, "damaged model metadata: hidden_size must be an integer, got '8'"),
        ({"model": {"hidden_size": True}}, "damaged model metadata: hidden_size must be an integer"),
        ({"model": {"hidden_size": 10**6}}, "its weights are not those of its model: layer.weight_ih_l0 has shape (24, 2), expected (3000000, 2)"),
        ({"model": {"cell": "elman"}}, "damaged model metadata: cell must be one of lstm,"),
        ({"model": {"cell": "gru"}}, "its weights are not those of its model: "),
    ],
)  # fmt: skip
def test_damaged_notes(
    change: str | dict[str, object], reason: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "checkpoints/00000002/weights.safetensors"
    with safetensors.safe_open(path, framework="pt") as file:
        note = json.loads(file.metadata()["gatedrnn"])
    text = change if isinstance(change, str) else json.dumps({**note, **change})
    changed = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(safetensors.torch.load_file(path), changed, {"gatedrnn": text})
    assert _refused(changed, capsys).removeprefix(": ").startswith(reason)


@pytest.mark.parametrize("content", ["{", "[]", "{}", "[" * 100_000, '{"schema": 1, "kind": "gatedrnn run"}'])
def test_damaged_options_of_a_run(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "options.json").write_text(content, encoding="utf-8")
    _refused(tmp_path, capsys)


def test_options_that_contradict_the_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["timescales", str(run), "--forget-gate", "sigmoid"]) == 2
    assert "--forget-gate is sigmoid, but" in capsys.readouterr().err


def test_the_nru_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--length 10 --cell nru --hidden-size 8 --batch-size 4 --updates 1 --evaluation-size 5 --threads 1"
    assert cli.main(["train", "adding", *options.split(), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert cli.main(["timescales", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "gatedrnn: NRU has no forget gate, and so no time scales\n"


@pytest.mark.parametrize(
    ("saved", "options", "message"),
    [
        ("refine", ["--tied", "--forget-gate", "sigmoid"], "(saved with forget_gate=Refine())"),
        ("fast", ["--tied", "--forget-gate", "sigmoid"], "(saved with forget_gate=Fast())"),
    ],
)
def test_weights_that_name_another_gate(
    saved: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = torch.nn.ModuleDict({"rnn": gatedrnn.LSTM(3, 8, tied=True, forget_gate=saved)})
    torch.save({"model": model.state_dict()}, tmp_path / "w.pt")
    assert cli.main(["timescales", str(tmp_path / "w.pt"), "--cell", "lstm", *options]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    right = [str(tmp_path / "w.pt"), "--cell", "lstm", "--tied", "--forget-gate", saved]
    assert _printed(right, capsys)


def test_weights_of_an_auxiliary_gate_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dict of tensors names no gate; its names do."""
    torch.save(dict(gatedrnn.GRU(3, 8, forget_gate="refine").state_dict()), tmp_path / "w.pt")
    assert cli.main(["timescales", str(tmp_path / "w.pt"), "--cell", "gru", "--forget-gate", "fast"]) == 2
    assert "unexpected weight weight_ih_aux_l0" in capsys.readouterr().err.replace("\n", " ")


def test_an_empty_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("weights.pt", "weights.safetensors"):
        (tmp_path / name).touch()
        assert cli.main(["timescales", str(tmp_path / name), "--cell", "gru", "--forget-gate", "fast"]) == 2
        assert capsys.readouterr().err == f"gatedrnn: {tmp_path / name} is empty\n"


def test_a_folder_that_cannot_be_written_is_reported_first(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["timescales", str(run), "--out", str(run / "record.json")]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err == f"gatedrnn: cannot write to {run / 'record.json'}: {run / 'record.json'} is not a folder\n"


@pytest.mark.parametrize("verb", [["timescales"], ["evaluate", "--split", "validation"]])
def test_damaged_checkpoints_of_a_finished_run(
    verb: list[str], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that started it would print the result and train nothing."""
    copied = shutil.copytree(run, tmp_path / "run")
    for weights in copied.glob("checkpoints/*/weights.safetensors"):
        weights.write_bytes(b"")
    assert cli.main([*verb, str(copied)]) == 2
    what = f"all checkpoints in {copied} are damaged"
    assert f"{what}, and the run has finished; train it again in another folder\n" in capsys.readouterr().err
    (copied / "record.json").unlink()
    assert cli.main([*verb, str(copied)]) == 2
    assert f"{what}; resume the run with the command that started it\n" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["weights", "measured"])
def test_a_checkpoint_that_is_replaced_meanwhile(
    when: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run trains on while its time scales are read: the later checkpoint is used, and nothing is called damaged."""
    expected = _tables([str(run)], capsys)
    copied = shutil.copytree(run, tmp_path / "run")
    checkpoints = copied / "checkpoints"
    owner, name = (models, "load") if when == "weights" else (timescales, "opened")
    ordinary = getattr(owner, name)

    def trains_on(path: Path, *arguments: object, **options: object) -> object:
        if (folder := checkpoints / "00000002").exists():
            # As write_checkpoint does it, with the same weights under a later update.
            note = json.loads((folder / "checkpoint.json").read_text())
            files = {name: (folder / name).read_bytes() for name in note.pop("sha256")}
            del note["sha256_of_this"], note["update"]
            write_checkpoint(copied, 3, note, files)
            write_checkpoint(copied, 4, note, files)
        return ordinary(path, *arguments, **options)

    monkeypatch.setattr(owner, name, trains_on)
    assert _tables([str(copied)], capsys) == expected
    assert sorted(entry.name for entry in checkpoints.iterdir()) == ["00000003", "00000004"]
