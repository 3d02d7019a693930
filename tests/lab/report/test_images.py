"""Tables of images: validation-selected test accuracy by model and task, and time an epoch, beside the paper's."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import PaperValue
from gatedrnn.lab.report import make, make_report
from gatedrnn.lab.report.comparisons import papers_values
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.result_claims import Best, SmallerGain
from gatedrnn.lab.report.runs import load
from tests.lab.report.records import declare, image_item, write_image_run
from tests.lab.report.test_make import Reader, report

MODELS = ("sigmoid", "refine", "fast")
VALUES = {
    "sigmoid": {"smnist": PaperValue(98.88, 0.12), "psmnist": PaperValue(95.71, 0.02), "time": PaperValue(14.3)},
    "refine": {"smnist": PaperValue(98.94, 0.03), "psmnist": PaperValue(95.93, 0.16), "time": PaperValue(22.7)},
    "fast": {"smnist": PaperValue(99.05, 0.04), "psmnist": PaperValue(96.18, 0.14), "time": PaperValue(14.7)},
}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})


def sweep(folder: Path, tasks: tuple[str, ...], budget: str = "desk", seeds: int = 3, **more: Any) -> None:
    """Test accuracies of psmnist: sigmoid 0.957 ± 0.001, refine 0.959 ± 0.001, fast 0.968 ± 0.001."""
    level = {"sigmoid": 0.956, "refine": 0.958, "fast": 0.967}
    pace = {"sigmoid": 60.0, "refine": 90.0, "fast": 63.0}
    for task in tasks:
        for model in MODELS:
            for seed in range(seeds):
                write_image_run(
                    folder / task / model / f"seed{seed}", model, seed, task, level[model] + seed / 1000, budget=budget,
                    seconds_an_epoch=pace[model], **more,
                )  # fmt: skip


def rows(markdown: str) -> list[str]:
    return [line for line in markdown.splitlines() if line.startswith("| ")]


def test_models_by_tasks(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("psmnist",))
    markdown, page, _ = report(tmp_path, [image_item(MODELS, values=VALUES)])
    assert rows(markdown)[3:7] == [
        "| model | psmnist, % test accuracy: measured, desk budget | paper | verdict | minutes per epoch on psmnist: measured, desk budget | paper | ÷ sigmoid: measured | paper |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| sigmoid | 95.70 ± 0.10 (n = 3) | 95.71 ± 0.02 | partial | 1 ± 0 | 14.3 | 1 | 1 |",
        "| refine | 95.90 ± 0.10 (n = 3) | 95.93 ± 0.16 | partial | 1.5 ± 0 | 22.7 | 1.5 | 1.59 |",
    ]  # fmt: skip
    assert (
        "Times, measured on cpu engine, 2 threads, test processor, depend on the machine and have no verdict."
        in markdown
    )
    assert "Tested once, with the weights of the best validation." in markdown
    assert "Not run: smnist." in markdown
    assert "Measured at desk budget, not the paper's setting, and the paper's values" in markdown
    assert "| tab:images | partial | desk 9 of 18 | Images |" in markdown
    assert "| fast | 3 | 0.978 ± 0.001 | 3 ± 0 | 0.968 ± 0.001 |" in markdown  # validation, at epoch, test
    cells = Reader(page).cells
    assert "96.80 ± 0.10 (n = 3)" in cells and "96.18 ± 0.14" in cells


def test_the_papers_setting_has_verdicts(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("smnist", "psmnist"), budget="paper")
    markdown, _, _ = report(tmp_path, [image_item(MODELS, values=VALUES, budget="paper")])
    (fast,) = [row for row in rows(markdown) if row.startswith("| fast | 96.80")]
    # 96.8 ± 0.1 against 99.05 ± 0.04 and 96.18 ± 0.14, three seeds each: farther than chance allows, both.
    assert re.match(
        r"\| fast \| 96\.80 ± 0\.10 \(n = 3\) \| 99\.05 ± 0\.04 \| differs \| 96\.80 ± 0\.10 \(n = 3\) \| 96\.18 ± 0\.14 \| differs \|",
        fast,
    )
    (sigmoid,) = [row for row in rows(markdown) if row.startswith("| sigmoid | 95.70")]
    assert "| 95.71 ± 0.02 | agrees |" in sigmoid
    assert "desk" not in markdown.partition("## How to read")[0]


def test_a_run_that_was_not_tested_has_no_result(tmp_path: Path) -> None:
    """What validation says is not shown as a test result."""
    sweep(tmp_path / "runs", ("psmnist",), seeds=2)
    write_image_run(tmp_path / "runs" / "cut", "fast", 2, "psmnist", 0.9, ended=False)
    markdown, _, _ = report(tmp_path, [image_item(MODELS, values=VALUES)])
    assert any(
        row.startswith("| fast | 96.75 ± 0.07 (n = 2, 1 incomplete not counted) | 96.18 ± 0.14 | partial |")
        for row in rows(markdown)
    )
    assert "| fast | 2 of 3 | 0.9775 ± 0.00071 | 3 ± 0 | 0.9675 ± 0.00071 |" in rows(markdown)
    assert "| fast | 3 | 15 ± 0 (of 2 runs) | — |" in rows(markdown)
    assert "desk budget, not the paper's setting, some runs incomplete" in markdown
    assert "unfinished at update 1800" in markdown


def test_one_seed_decides_nothing(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("psmnist",), budget="paper", seeds=1)
    table = image_item(
        MODELS, ("psmnist",), seeds=1, budget="paper", values=VALUES, expected=("fast is best on each task",)
    )
    markdown, _, _ = report(tmp_path, [table])
    assert any(row.startswith("| sigmoid | 95.60 (n = 1) | 95.71 ± 0.02 | partial |") for row in rows(markdown))
    (said,) = [row for row in rows(markdown) if row.startswith("| fast is best on each task")]
    assert (
        "| not decided |" in said
        and "fewer than 3 seeds of the same length to compare" in said
        and said.endswith("| partial |")
    )


def test_the_best_on_test_data(tmp_path: Path) -> None:
    sweep(tmp_path, ("psmnist",))
    groups = {group.name: group for group in image_item(MODELS).groups(load(tmp_path)[0])["desk"]}
    found = Best("fast", ("sigmoid", "refine"), ("psmnist",)).check(groups, None)
    assert found.holds is True  # the same difference with every seed
    assert re.fullmatch(
        r"psmnist, fast against sigmoid: better by 0\.01[01]\S* … 0\.011\S* \(95 %\); psmnist, fast against refine: .*",
        found.seen,
    )
    assert Best("sigmoid", ("fast",), ("psmnist",)).check(groups, None).holds is False
    assert Best("fast", ("sigmoid",), ("psmnist", "smnist")).check(groups, None).holds is None
    assert Best("fast", ("NRU",), ("psmnist",)).check(groups, None).holds is None


@pytest.mark.parametrize(
    ("gain", "holds", "seen"),
    [
        (
            0.005,
            True,
            "psmnist, NRU against chrono: better by 0.00251 … 0.00749 (95 %); "
            "psmnist, fast against sigmoid: gain larger by 0.00351 … 0.00849 (95 %)",
        ),
        (-0.005, False, None),
        (0.02, False, None),
        (0.0, None, None),
    ],
)
def test_a_smaller_gain(gain: float, holds: bool | None, seen: str | None, tmp_path: Path) -> None:
    """fast is better than sigmoid by 0.011 with every seed; the other pair by the gain, with a spread of 0.001: t(2) gives ± 0.0025."""
    sweep(tmp_path, ("psmnist",))
    for seed, spread in enumerate((-0.001, 0.0, 0.001)):
        write_image_run(tmp_path / f"b{seed}", "chrono", seed, "psmnist", 0.8)
        write_image_run(tmp_path / f"m{seed}", "NRU", seed, "psmnist", 0.8 + gain + spread)
    models = (*MODELS, "chrono", "NRU")
    groups = {group.name: group for group in image_item(models).groups(load(tmp_path)[0])["desk"]}
    found = SmallerGain("NRU", "chrono", ("fast", "sigmoid"), ("psmnist",)).check(groups, None)
    assert found.holds is holds
    assert seen is None or found.seen == seen


def test_a_difference_within_its_uncertainty_is_not_decided(tmp_path: Path) -> None:
    for seed, (ours, theirs) in enumerate(((0.90, 0.91), (0.93, 0.91), (0.94, 0.92))):
        write_image_run(tmp_path / f"f{seed}", "fast", seed, "psmnist", ours)
        write_image_run(tmp_path / f"s{seed}", "sigmoid", seed, "psmnist", theirs)
    groups = {group.name: group for group in image_item(MODELS).groups(load(tmp_path)[0])["desk"]}
    assert Best("fast", ("sigmoid",), ("psmnist",)).check(groups, None).holds is None


def test_curves_against_epochs(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("smnist", "psmnist"))
    figure = image_item(MODELS, ("psmnist",), label="fig:images", columns={}, view="updates")
    markdown, _, charts = report(tmp_path, [image_item(MODELS, values=VALUES), figure])
    assert {stem for stem in charts if "time_scales" not in stem} == {
        "tab_images_desk_smnist", "tab_images_desk_psmnist", "fig_images_desk",
    }  # fmt: skip
    chart = charts["fig_images_desk"]
    assert (chart["steps"], chart["against"], chart["log_y"]) == ("epochs", "updates", False)
    assert chart["y_label"] == "accuracy (fraction)"
    fast = chart["series"][-1]
    assert fast["name"] == "fast" and fast["updates"]["x"] == [0, 1, 2, 3, 4]
    assert fast["updates"]["mean"][3] == pytest.approx(0.978)
    assert fast["runs"][0]["updates"] == [0, 1, 2, 3, 4]
    assert "Images, psmnist (desk budget, not the paper's setting)" in markdown


def test_times_are_told_by_machine(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("psmnist",), seeds=1)
    write_image_run(
        tmp_path / "runs" / "n", "NRU", 0, "psmnist", 0.9, engine="reference: a loop", seconds_an_epoch=600.0
    )
    item = image_item(
        (*MODELS, "NRU"),
        ("psmnist",),
        seeds=1,
        values={**VALUES, "NRU": {"psmnist": PaperValue(94.76, 0.35), "time": PaperValue(35.0)}},
    )
    markdown, _, _ = report(tmp_path, [item])
    assert any(
        "| 10 on reference engine, 2 threads, test processor | 35.0 | — | 2.45 |" in row for row in rows(markdown)
    )
    assert any(
        "| 1.05 on cpu engine, 2 threads, test processor | 14.7 | 1.05 | 1.03 |" in row for row in rows(markdown)
    )
    assert "| fast | 1 | 15 | 63 |" in markdown and "| NRU | 1 | 15 | 600 |" in markdown
    assert "Times measured on: reference engine, 2 threads, test processor." in markdown


def test_runs_with_fewer_epochs_than_declared_are_labelled(tmp_path: Path) -> None:
    declared = image_item(("sigmoid", "fast"), ("psmnist",), seeds=1, values=VALUES)
    for model, epochs in (("sigmoid", 5), ("fast", 20)):
        folder = tmp_path / "runs" / model
        write_image_run(folder, model, 0, "psmnist", 0.9)
        options = json.loads((folder / "options.json").read_text())
        options["training"]["epochs"] = epochs
        if model == "sigmoid":  # as by a sweep with --epochs 5
            (grid,) = {slot.grid for slot in declared.declared["desk"].values()}
            options["key"] = "of the shorter run"
            record = json.loads((folder / "record.json").read_text())
            (folder / "record.json").write_text(json.dumps({**record, "key": options["key"]}))
        (folder / "options.json").write_text(json.dumps(options))
        if model == "sigmoid":
            declare(folder, grid, "desk", model)
    epochs_of = dict.fromkeys(declared.declared["desk"].values(), 20)
    markdown, _, _ = report(tmp_path, [dataclasses.replace(declared, epochs=epochs_of)])
    (sigmoid,) = [row for row in rows(markdown) if "95.71 ± 0.02" in row]
    assert sigmoid.startswith("| sigmoid | 90.00 (n = 1, first 5 of 20 epochs) | 95.71 ± 0.02 | partial |")
    assert re.search(
        r"\n\* sigmoid: options differ from those currently declared for \S+ at desk budget \(first 5 of 20", markdown
    )
    ends = {row.split(" | ")[0]: row for row in rows(markdown) if row.endswith(("epochs |", "finished |"))}
    assert ends["| sigmoid"].endswith("| first 5 of 20 epochs |") and ends["| fast"].endswith("| finished |")
    assert "2 runs (1 finished, 1 with fewer epochs than declared)" in markdown


def test_numbers_of_the_paper_keep_their_digits(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("psmnist",), seeds=1)
    values = {**VALUES, "fast": {"psmnist": PaperValue(96.5, 0.1), "time": PaperValue(35.0)}}
    markdown, _, _ = report(tmp_path, [image_item(MODELS, ("psmnist",), seeds=1, values=values)])
    assert any("| 96.50 ± 0.10 | partial |" in row and "| 35.0 |" in row for row in rows(markdown))
    words = {"under 100": PaperValue(2026.87), "all": PaperValue(60.5)}
    columns = dict.fromkeys(words, "test perplexity")
    (table,) = papers_values(image_item(MODELS, values={"fast": words}, columns=columns))
    assert table.rows == [("fast", "2026.87", "60.50")]


def test_a_desk_run_is_never_the_papers(tmp_path: Path) -> None:
    sweep(tmp_path / "runs", ("psmnist",))
    make_report(tmp_path / "runs", tmp_path / "out", items=[image_item(MODELS, values=VALUES)])
    before = (tmp_path / "out" / "report.md").read_text().partition("## How to read")[0]
    assert "agrees |" not in before and "differs |" not in before
    assert "paper's setting" not in before.replace("not the paper's setting", "")


def test_the_declared_tables_can_be_shown() -> None:
    """Every table of the paper has its columns for the tasks it names."""
    from gatedrnn.lab.report.items import paper_items

    tables: list[Item] = [item for item in paper_items() if item.label.startswith("tab:sMNIST")]
    assert len(tables) == 3
    for item in tables:
        assert set(item.tasks) < set(item.columns)
        assert item.columns["time"].split()[-1] in item.tasks
        assert all(item.columns[task].startswith("%") and "test" in item.columns[task] for task in item.tasks)


def test_models_of_different_lengths_are_not_compared(tmp_path: Path) -> None:
    sweep(tmp_path, ("psmnist",))
    for seed in range(3):
        path = tmp_path / "psmnist" / "sigmoid" / f"seed{seed}" / "options.json"
        options = json.loads(path.read_text())
        options["training"]["epochs"] = 1
        path.write_text(json.dumps(options))
    groups = {group.name: group for group in image_item(MODELS).groups(load(tmp_path)[0])["desk"]}
    found = Best("fast", ("sigmoid", "refine"), ("psmnist",)).check(groups, None)
    assert found.holds is None
    assert "psmnist, fast against sigmoid: fewer than 3 seeds of the same length to compare" in found.seen
    assert "psmnist, fast against refine: better by" in found.seen


def _with_epochs(folder: Path, epochs: int) -> None:
    for options in folder.rglob("options.json"):
        written = json.loads(options.read_text())
        written["training"]["epochs"] = epochs
        options.write_text(json.dumps(written))


def test_incomplete_runs_are_not_compared_as_the_papers_setting(tmp_path: Path) -> None:
    """One epoch of 150 with every seed, and a time budget: neither is the length that is declared."""
    declared = image_item(MODELS, ("psmnist",), budget="paper", values=VALUES, expected=("fast is best on each task",))
    sweep(tmp_path / "runs", ("psmnist",), budget="paper")
    _with_epochs(tmp_path / "runs", 1)
    epochs_of = dict.fromkeys(declared.declared["paper"].values(), 150)
    markdown, _, charts = report(tmp_path, [dataclasses.replace(declared, epochs=epochs_of)])
    assert "96.80 ± 0.10 (n = 3, first 1 of 150 epochs)" in markdown
    assert "Measured at the paper's setting, incomplete runs, and" in markdown
    assert "checked at the paper's setting, incomplete runs." in markdown
    assert all("(the paper's setting, incomplete runs)" in chart["title"] for chart in charts.values())
    (said,) = [row for row in rows(markdown) if row.startswith("| fast is best on each task")]
    assert said.startswith("| fast is best on each task | not decided |")

    groups = {group.name: group for group in declared.groups(load(tmp_path / "runs")[0])["paper"]}
    assert Best("fast", ("sigmoid",), ("psmnist",)).check(groups, None).holds is True  # without the declared epochs
    for record in (tmp_path / "runs" / "psmnist" / "sigmoid").rglob("record.json"):
        record.write_text(json.dumps({**json.loads(record.read_text()), "outcome": "budget_spent"}))
    groups = {group.name: group for group in declared.groups(load(tmp_path / "runs")[0])["paper"]}
    assert Best("fast", ("sigmoid",), ("psmnist",)).check(groups, None).holds is None


def test_seeds_of_different_lengths_are_not_averaged(tmp_path: Path) -> None:
    declared = image_item(MODELS, ("psmnist",), budget="paper", values=VALUES)
    sweep(tmp_path / "runs", ("psmnist",), budget="paper")
    for seed, epochs in enumerate((1, 2, 150)):
        _with_epochs(tmp_path / "runs" / "psmnist" / "sigmoid" / f"seed{seed}", epochs)
        _with_epochs(tmp_path / "runs" / "psmnist" / "fast" / f"seed{seed}", min(epochs, 2))
    epochs_of = dict.fromkeys(declared.declared["paper"].values(), 150)
    markdown, _, _ = report(tmp_path, [dataclasses.replace(declared, epochs=epochs_of)])
    assert "| sigmoid | 95.80 (n = 1, 2 incomplete not counted) | 95.71 ± 0.02 |" in markdown
    assert "| fast | — (n = 0, 3 incomplete, of different lengths) | 96.18 ± 0.14 |" in markdown
