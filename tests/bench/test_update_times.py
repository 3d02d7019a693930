"""benchmarks/update_times.py: what it measures and how it writes it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from gatedrnn.lab.experiments import EXPERIMENTS
from gatedrnn.lab.report.items import item_of
from gatedrnn.lab.report.update_times import find

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "update_times.py"))


def made(out: Path, *arguments: str) -> dict[str, Any]:
    threads = torch.get_num_threads()
    try:
        SCRIPT["main"](["--out", str(out), "--rounds", "2", "--turn", "0", *arguments])
    finally:
        torch.set_num_threads(threads)
    record: dict[str, Any] = json.loads((out / "update_times.json").read_text())
    return record


def test_the_record_is_one_that_the_report_reads(tmp_path: Path) -> None:
    record = made(tmp_path, "--settings", "adding/smoke", "--models", "fast", "NRU")
    assert [(e["grid"], e["budget"], e["model"], len(e["rounds"]), e["threads"]) for e in record["updates"]] == [
        ("adding", "smoke", "fast", 2, 1),
        ("adding", "smoke", "NRU", 2, 1),
    ]
    first = record["updates"][0]
    assert first["seconds"]["low"] <= first["seconds"]["median"] == pytest.approx(sum(first["rounds"]) / 2)
    assert "commit" not in json.dumps(record)
    warnings: list[str] = []
    times = find(tmp_path, [item_of(EXPERIMENTS["fig:adding_mse"])], warnings)
    assert warnings == [] and times is not None
    assert [place.named for place in times.by_place] == ["adding/smoke/fast", "adding/smoke/NRU"]


def test_runs_that_only_train_for_another_time_have_the_same_update() -> None:
    """The small models on psMNIST at desk budget are those of the paper; the large ones, and T=300, are not."""

    def same(setting: str) -> list[str]:
        (declared,) = SCRIPT["chosen"](setting, ["fast"])
        return [run.folder for run in SCRIPT["with_the_same_update"](setting, declared)]

    assert same("small_psmnist/paper") == ["small_psmnist/desk/fast/seed0"]
    assert same("large_psmnist/paper") == same("adding/paper") == same("copy/paper") == same("ptb/paper") == []


def test_other_settings_stay_and_the_same_is_replaced(tmp_path: Path) -> None:
    made(tmp_path, "--settings", "adding/smoke", "--models", "fast")
    made(tmp_path, "--settings", "copy/smoke", "--models", "fast")
    record = made(tmp_path, "--settings", "adding/smoke", "--models", "sigmoid")
    assert [(e["grid"], e["model"]) for e in record["updates"]] == [("copy", "fast"), ("adding", "sigmoid")]
    assert [path.name for path in tmp_path.iterdir()] == ["update_times.json"]


def test_another_machine_is_refused(tmp_path: Path) -> None:
    record = made(tmp_path, "--settings", "adding/smoke", "--models", "fast")
    record["machine"]["processor"] = "another"
    (tmp_path / "update_times.json").write_text(json.dumps(record))
    with pytest.raises(SystemExit, match="measured with a different processor; delete it or choose another folder"):
        made(tmp_path, "--settings", "adding/smoke", "--models", "fast")
    assert json.loads((tmp_path / "update_times.json").read_text()) == record


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--settings", "adding"), "unknown setting 'adding'"),
        (("--settings", "adding/large"), "unknown setting 'adding/large'"),
        (("--settings", "ptb/smoke", "--models", "chrono"), "ptb/smoke has no model 'chrono'; it has sigmoid, refine"),
    ],
)
def test_what_is_not_declared_is_refused_before_anything_is_measured(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=said):
        made(tmp_path / "new", *arguments)
    assert not (tmp_path / "new").exists()


def test_the_settings_are_those_of_the_figures_against_time_and_of_the_papers_times() -> None:
    chosen = {
        setting: {declared.model_name: declared.seed for declared in SCRIPT["chosen"](setting, models)}
        for setting, models in SCRIPT["SETTINGS"].items()
    }
    assert {seed for seeds in chosen.values() for seed in seeds.values()} == {0}
    papers = {f"{grid}/paper" for grid in ("adding", "copy", "small_psmnist", "large_psmnist", "ptb")}
    # Their updates at desk budget are other ones; those of small images are the same.
    assert set(chosen) == papers | {f"{grid}/desk" for grid in ("adding", "copy", "large_psmnist", "ptb")}
    for budget in ("paper", "desk"):
        assert set(chosen[f"adding/{budget}"]) == set(EXPERIMENTS["fig:adding_runtime"].models)
    assert set(chosen["small_psmnist/paper"]) == set(EXPERIMENTS["tab:sMNIST_small_results"].models)
    assert list(chosen["ptb/paper"]) == ["sigmoid", "refine", "fast"]
