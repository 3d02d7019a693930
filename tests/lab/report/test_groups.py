"""Groups of seeds and the names they get."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import MODEL_NAMES
from gatedrnn.lab.models import MODELS as MODEL_KINDS
from gatedrnn.lab.report import groups, tables, text
from gatedrnn.lab.report.groups import by_options, clocks_of, describe, group, in_order, name_of_model
from gatedrnn.lab.report.looks import Looks, contrast, lightened
from gatedrnn.lab.report.runs import load
from gatedrnn.lab.tasks import TASKS
from gatedrnn.lab.training import Training
from gatedrnn.theory.palette import looks
from tests.lab.report.records import MODELS, write_run, write_sweep


@pytest.mark.parametrize("name", MODELS)
def test_the_papers_names(name: str) -> None:
    assert name_of_model(MODELS[name]) == name


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"cell": "lstm", "tied": True, "forget_gate": "refine", "forget_init": "uniform"}, "UR"),
        ({"cell": "lstm", "tied": True, "forget_gate": "fast", "forget_init": "uniform"}, "UF"),
        ({"cell": "lstm", "tied": True, "forget_gate": "fast", "forget_init": "chrono"}, "fast chrono"),
        ({"cell": "lstm", "tied": False, "forget_gate": "fast", "forget_init": "constant"}, "untied lstm fast"),
        ({"cell": "janet", "forget_gate": "sigmoid", "forget_init": "chrono"}, "JANET"),
        ({"cell": "gru", "forget_gate": "fast", "forget_init": "constant"}, "fast-GRU"),
        ({"cell": "gru", "forget_gate": "refine", "forget_init": "uniform"}, "UR-GRU"),
        ({"cell": "gru", "forget_gate": "polynomial", "forget_init": "constant"}, "gru polynomial"),
        ({"cell": "mgu", "forget_gate": "fast", "forget_init": "chrono"}, "mgu fast chrono"),
        ({"cell": "lstm", "tied": True, "forget_gate": "polynomial", "forget_init": "constant"}, "polynomial"),
    ],
)
def test_further_names(model: dict[str, Any], expected: str) -> None:
    assert name_of_model(model) == expected


def test_groups_that_differ_are_told_apart(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a", ("fast", "sigmoid"), seeds=2)
    write_run(tmp_path / "b", "fast", 0, training={"lr": 0.01, "threads": 1, "budget_seconds": 5.0}, key="b")
    write_run(tmp_path / "c", "fast", 0, task={"length": 100}, key="c")
    tasks = by_options(load(tmp_path)[0])
    assert list(tasks) == ["adding, length=100", "adding, length=300"]
    assert [found.name for found in tasks["adding, length=100"]] == ["fast"]
    assert [(found.name, found.model, len(found.runs)) for found in tasks["adding, length=300"]] == [
        ("sigmoid", "sigmoid", 2),
        ("fast, lr=0.001", "fast", 2),
        ("fast, lr=0.01", "fast", 1),
    ]


def test_options_without_an_effect_do_not_split_the_seeds(tmp_path: Path) -> None:
    for seed, data in enumerate((None, "/data")):
        write_run(tmp_path / f"i{seed}", "fast", seed, task={"name": "psmnist", "data": data})
        write_run(tmp_path / f"m{seed}", "fast", seed, task={"name": "mine", "data": data}, key=f"m{seed}")
    tasks = by_options(load(tmp_path)[0])
    # A custom task may have an option of that name on which its result depends.
    assert {task: [len(found.runs) for found in groups] for task, groups in tasks.items()} == {
        "mine, length=300": [1],
        "mine, length=300, data=/data": [1],
        "psmnist, length=300": [2],
    }


def test_an_option_that_did_not_exist_yet_does_not_split_the_seeds(tmp_path: Path) -> None:
    write_run(tmp_path / "old", "fast", 0)
    later = {"stop_patience": None, "average_patience": None, "epochs": None, "processes": 1}
    write_run(tmp_path / "new", "fast", 1, training=later, options={"head_size": None, "read": "last"})
    write_run(tmp_path / "mean", "fast", 2, training={**later, "stop_patience": 3}, options={"read": "mean"})
    groups = by_options(load(tmp_path)[0])["adding, length=300"]
    assert [(found.name, len(found.runs)) for found in groups] == [
        ("fast, read=last, stop_patience=null", 2),
        ("fast, read=mean, stop_patience=3", 1),
    ]


def test_every_option_is_known_by_its_effect() -> None:
    """The report does not import the options, so it repeats what they declare."""
    beside = {
        name: {field.name for field in dataclasses.fields(task) if "beside" in field.metadata}
        for name, task in TASKS.items()
    }
    assert {name: fields for name, fields in beside.items() if fields} == {
        name: set(fields) for name, fields in groups._BESIDE_IN_TASKS.items()
    }
    training = {field.name for field in dataclasses.fields(Training) if "beside" in field.metadata}
    assert training | {"seed"} == set(groups._NO_DIFFERENCE)
    models = [*MODEL_KINDS.values()]
    assert not any("beside" in field.metadata for model in models for field in dataclasses.fields(model))
    neutral = {
        field.name: field.metadata["neutral"]
        for options in (Training, *models, *TASKS.values())
        for field in dataclasses.fields(options)
        if field.metadata.get("neutral") is not None
    }
    assert neutral == groups._NEUTRAL


def _on_data(folder: Path, seed: int, digest: str | None) -> None:
    write_run(folder, "fast", seed, task={"name": "text", "train": "a.txt"}, key=f"text-{seed}")
    if digest is not None:
        path = folder / "record.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "fingerprint": {"train": digest}}))


def test_different_data_under_one_name_is_told_apart(tmp_path: Path) -> None:
    for name, seed, digest in (("a0", 0, "1f"), ("a1", 1, "1f"), ("a2", 2, None)):
        _on_data(tmp_path / name, seed, digest)
    # A record without the digests is assumed to be of the only data there is.
    assert [len(found.runs) for found in by_options(load(tmp_path)[0])["text, length=300, train=a.txt"]] == [3]
    _on_data(tmp_path / "b0", 0, "2f")
    tasks = by_options(load(tmp_path)[0])
    assert {task: [len(found.runs) for found in groups] for task, groups in tasks.items()} == {
        "text, length=300, train=a.txt, data of a0": [2],
        "text, length=300, train=a.txt, data not known": [1],
        "text, length=300, train=a.txt, data of b0": [1],
    }


def test_runs_with_the_same_options_and_different_results_are_not_averaged(tmp_path: Path) -> None:
    for name, seed, value in (("a0", 0, 0.1), ("a1", 1, 0.1), ("b0", 0, 0.3)):
        write_run(tmp_path / name, "fast", seed, curve=lambda i, value=value: value)
    groups = by_options(load(tmp_path)[0])["adding, length=300"]
    assert [(found.name, len(found.runs)) for found in groups] == [
        ("fast", 1),
        ("fast, run=a0", 1),
        ("fast, run=b0", 1),
    ]


def test_no_two_groups_have_one_name(tmp_path: Path) -> None:
    for seed, value in enumerate((1, "1")):
        write_run(tmp_path / f"{seed}", "fast", seed, training={"a": value})
    groups = by_options(load(tmp_path)[0])["adding, length=300"]
    assert sorted(found.name for found in groups) == ["fast, a=1", "fast, a=1 (2)"]


def test_a_mean_is_of_complete_runs_if_there_are_any(tmp_path: Path) -> None:
    for seed, value in enumerate((0.1, 0.3)):
        write_run(tmp_path / f"{seed}", "fast", seed, curve=lambda i, value=value: value)
    for seed in (2, 3):
        write_run(tmp_path / f"{seed}", "fast", seed, evaluations=3, outcome=None, curve=lambda i: 0.9)
    runs = load(tmp_path)[0]
    found = group("fast", "fast", runs)
    assert [run.seed for run in found.counted] == [0, 1]
    for which in ("best", "final"):
        mean = found.mean(which)
        assert mean is not None and (mean.n, mean.mean) == (2, pytest.approx(0.2))
    assert found.arrivals(0.05).n == 4  # a stopped run is known not to have reached it so far
    alone = group("fast", "fast", runs[2:]).mean("best")
    assert alone is not None and (alone.n, alone.mean) == (2, pytest.approx(0.9))


def test_tables_tell_which_runs_a_mean_is_of(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(tmp_path / f"{seed}", "fast", seed, curve=lambda i: 0.1)
    write_run(tmp_path / "2", "fast", 2, evaluations=3, outcome=None, curve=lambda i: 0.9)
    found = [group("fast", "fast", load(tmp_path)[0])]
    said = "(n = 2, 1 incomplete not counted)"
    (row,) = tables.results(found, []).rows
    assert row[1:4] == ("3", f"0.1 ± 0 {said}", f"0.1 ± 0 {said}")
    scales = tables.time_scales(found)
    assert scales is not None
    assert [row[:4] for row in scales.rows] == [("fast", "l0", f"bias {said}", text.number(3 * 1.3**30))]
    path = tmp_path / "2" / "record.json"
    tested = {"outcome": "budget_spent", "validation": {"mse": 0.9}, "test": {"mse": 0.9}}
    shutil.copy(tmp_path / "1" / "record.json", path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **tested, "key": "fast-2"}))
    for seed in (0, 1):
        path = tmp_path / f"{seed}" / "record.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "validation": {"mse": 0.1}, "test": {"mse": 0.1}}))
    selected = tables.selected([group("fast", "fast", load(tmp_path)[0])])
    assert selected is not None and selected.rows == [("fast", "2 of 3", "0.1 ± 0", "—", "0.1 ± 0")]
    (row,) = tables.results([group("fast", "fast", found[0].runs[:2])], []).rows
    assert row[2] == "0.1 ± 0"


def test_describe() -> None:
    assert describe({"name": "copy", "length": 5, "x": None, "flag": True}) == "copy, length=5, flag=true"
    assert describe({"cell": "gru"}) == "cell=gru"


def test_a_group_by_clock(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, threads=1)
    write_run(tmp_path / "b", "fast", 1, threads=2)
    found = group("fast", "fast", load(tmp_path)[0])
    assert clocks_of([found]) == ["cpu engine, 1 thread, test processor", "cpu engine, 2 threads, test processor"]
    part = found.on("cpu engine, 2 threads, test processor")
    assert part is not None and [run.seed for run in part.runs] == [1]
    assert found.on("another") is None
    assert found.arrivals(0.02).mean is not None
    assert found.arrivals(0.02).mean.mean == 50 * (8 + 0.5 + 7)  # type: ignore[union-attr]  # 0.17·e^(−7/3) < 0.02


def test_the_papers_models_keep_their_colours(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a", ("fast", "sigmoid", "NRU"), seeds=1)
    write_run(tmp_path / "b", "fast", 0, training={"lr": 0.01}, key="b")
    write_run(tmp_path / "c", "fast", 0, options={"cell": "gru", "tied": None}, key="c")
    groups = by_options(load(tmp_path)[0])["adding, length=300"]
    chosen = Looks(found.model for found in groups).of(groups)
    assert chosen["fast, lr=0.001"].light == chosen["fast, lr=0.01"].light == looks(["fast"])["fast"].colour
    assert chosen["fast, lr=0.001"].dash != chosen["fast, lr=0.01"].dash
    assert chosen["sigmoid"] == Looks([]).of([found for found in groups if found.name == "sigmoid"])["sigmoid"]
    assert len({(look.light, look.dash) for look in chosen.values()}) == len(groups) == 5
    assert chosen["fast-GRU"].light == chosen["fast, lr=0.01"].light


def test_many_strangers_stay_apart() -> None:
    strangers = [group(f"model {i}", f"model {i}", []) for i in range(38)]  # 12 colours, 4 dashes, 10 are the paper's
    groups = in_order([*strangers, *(group(name, name, []) for name in MODEL_NAMES)])
    chosen = Looks(found.model for found in groups).of(groups)
    assert len({(look.light, look.dash) for look in chosen.values()}) == 48


def test_contrast_on_dark_ground() -> None:
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
    for look in looks([*MODELS, "polynomial", "UR", "UF", "JANET"]).values():
        assert contrast(lightened(look.colour), "#1f2228") >= 4.5
