"""Groups of seeds and the names they get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import MODEL_NAMES
from gatedrnn.lab.report.groups import by_options, clocks_of, describe, group, in_order, name_of_model
from gatedrnn.lab.report.looks import Looks, contrast, lightened
from gatedrnn.lab.report.runs import load
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
