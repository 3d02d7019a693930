"""Which runs belong to an item of the paper, and what a run measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS
from gatedrnn.lab.report.items import item_of, measures_of, paper_items
from gatedrnn.lab.report.measure import LOSS, Measure, measure_in
from gatedrnn.lab.report.runs import LabRun, Slot, load
from tests.lab.report.records import declare, item, write_run


def only(folder: Path) -> tuple[LabRun, list[str]]:
    (run,), warnings = load(folder)
    return run, warnings


def test_a_run_is_known_by_what_its_sweep_declared(tmp_path: Path) -> None:
    """Its key may be any: the sweep wrote down which run it is."""
    write_run(tmp_path / "a", "fast", 1, key="a key of another version")
    declare(tmp_path / "a", "adding", "desk", "fast")
    run, warnings = only(tmp_path)
    assert warnings == []
    assert run.slot == Slot("adding", "desk", "adding", "fast", 1)
    assert item("desk").budget_of(run) == "desk"
    assert item("paper").budget_of(run) is None
    assert item("desk", models=("sigmoid",)).budget_of(run) is None
    assert (
        item("desk", tasks=("copy",), declared={"desk": {"k": Slot("copy", "desk", "copy", "fast", 1)}}).budget_of(run)
        is None
    )
    assert item("desk", seeds=1).budget_of(run) == "desk"  # a seed more than were declared
    (group,) = item("desk").groups([run])["desk"]
    assert (group.name, [run.seed for run in group.runs]) == ("fast", [1])


def test_a_run_without_a_declaration_is_known_by_its_key(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 1)
    run, _ = only(tmp_path)
    assert run.slot is None
    assert item("desk").budget_of(run) == "desk"
    assert item("desk", seeds=1).budget_of(run) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 7}, "a different task or seed"),
        ({"task": "copy"}, "a different task or seed"),
        ({"budget": True}, "declared.budget is true, expected a string"),
        ({"grid": None}, "declared.grid is null, expected a string"),
    ],
)
def test_a_declaration_that_is_not_of_this_run_is_left_out(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    write_run(tmp_path / "a", "fast", 1)
    declare(tmp_path / "a", "adding", "desk", "fast", change)
    run, warnings = only(tmp_path)
    assert run.slot is None
    assert warnings and said in warnings[0] and warnings[0].startswith("a: options.json")
    assert item("desk").budget_of(run) == "desk"  # by its key


def test_two_runs_of_one_place_count_once(tmp_path: Path) -> None:
    for name, evaluations in (("a", 10), ("b", 31)):
        write_run(tmp_path / name, "fast", 1, evaluations=evaluations, key=name)
        declare(tmp_path / name, "adding", "desk", "fast")
    run, warnings = only(tmp_path)
    assert run.name == "b"
    assert warnings == ["a: the same run as b; counted once"]


def test_every_declared_run_has_its_place() -> None:
    found = {one.label: one for one in paper_items()}
    assert set(found) == set(EXPERIMENTS)
    adding = found["fig:adding_mse"]
    assert list(adding.declared) == list(BUDGETS)
    for budget in BUDGETS:
        runs = EXPERIMENTS["fig:adding_mse"].runs(budget)
        assert adding.declared[budget] == {
            one.run.key(): Slot("adding", budget, "adding", one.model_name, one.seed) for one in runs
        }
    assert item_of(EXPERIMENTS["fig:saturation"]).declared == {}


def test_what_is_measured_comes_from_the_record(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0)
    path = tmp_path / "a" / "record.json"
    said = {"metric": "bits", "lower_is_better": False, "metric_unit": "bits a symbol", "metric_scale": "log"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))
    run, _ = only(tmp_path)
    assert run.measure == Measure("bits", lower_is_better=False, unit="bits a symbol", log=True)
    assert run.measure.label == "bits (bits a symbol)"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, None),
        ({"metric": "mse"}, None),
        ({"metric": "mse", "lower_is_better": True}, Measure("mse", True, log=True)),
        ({"metric": "accuracy", "lower_is_better": False}, Measure("accuracy", False, log=False)),
        ({"metric": "mse", "lower_is_better": True, "metric_scale": "linear"}, Measure("mse", True, log=False)),
        ({"metric": "p", "lower_is_better": True, "metric_unit": None}, Measure("p", True)),
    ],
)
def test_a_scale_follows_from_the_direction_where_none_is_written(
    written: dict[str, object], expected: Measure | None
) -> None:
    assert measure_in(written) == expected


def test_an_unfinished_run_measures_what_others_of_its_task_do(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0, outcome=None)
    assert only(tmp_path)[0].measure == LOSS
    assert load(tmp_path, measures_of([item()]))[0][0].measure == Measure("mse", lower_is_better=True)
    write_run(tmp_path / "b", "fast", 1)
    assert [run.measure.name for run in load(tmp_path)[0]] == ["mse", "mse"]
    options = json.loads((tmp_path / "a" / "options.json").read_text())
    said = {"metric": "loss", "lower_is_better": True, "metric_scale": "linear"}
    (tmp_path / "a" / "options.json").write_text(json.dumps({**options, **said}))
    assert load(tmp_path)[0][0].measure == Measure("loss", lower_is_better=True, log=False)
