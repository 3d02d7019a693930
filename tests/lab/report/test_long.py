"""Searches, lengths, the monitor, and experiments of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import EXPERIMENTS, OWN
from gatedrnn.lab.report import lengths, make
from gatedrnn.lab.report.fields import evaluation, kept
from gatedrnn.lab.report.groups import group
from gatedrnn.lab.report.items import item_of, own_items, paper_items
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.make import read_report
from gatedrnn.lab.report.runs import LabRun, load
from gatedrnn.lab.report.stability import stability_charts
from tests.lab.report.records import declare, write_image_run, write_run
from tests.lab.report.test_make import report

SPEECH, TONES = item_of(EXPERIMENTS["tab:results_sc"]), item_of(OWN["own:tones"])
SETTINGS = {"lr=0.001,clip=1": 0.4, "lr=0.001,clip=0.1": 0.7, "lr=0.0005,clip=1": 0.6}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})


def searched(folder: Path, model: str = "fast", budget: str = "paper") -> None:
    """One run for each setting, with the test accuracy that stands there."""
    for setting, accuracy in SETTINGS.items():
        place = folder / "speech" / budget / model / setting / "seed0"
        write_image_run(place, model, 0, "speech", accuracy, budget=budget, grid="speech")
        options = json.loads((place / "options.json").read_text())
        options["key"] = f"{model} {setting}"
        (place / "options.json").write_text(json.dumps(options))
        record = json.loads((place / "record.json").read_text())
        (place / "record.json").write_text(json.dumps({**record, "key": options["key"]}))
        declare(place, "speech", budget, model, {"task": "speech", "setting": setting})


def test_of_a_search_the_best_on_validation_data_counts(tmp_path: Path) -> None:
    searched(tmp_path)
    runs, warnings = load(tmp_path)
    assert warnings == [] and len(runs) == 3
    assert {run.slot.setting for run in runs if run.slot is not None} == set(SETTINGS)
    ((found,),) = [members for members in SPEECH.groups(runs).values() if members]
    (best,) = found.runs
    assert best.slot is not None and best.slot.setting == "lr=0.001,clip=0.1"
    assert len(SPEECH.members(runs)["paper"]) == 3


def test_a_run_that_measured_nothing_is_never_the_best(tmp_path: Path) -> None:
    searched(tmp_path)
    for setting in ("lr=0.001,clip=1", "lr=0.001,clip=0.1"):
        place = tmp_path / "speech" / "paper" / "fast" / setting / "seed0"
        (place / "record.json").unlink()
        (place / "metrics.jsonl").write_text("")
    ((found,),) = [members for members in SPEECH.groups(load(tmp_path)[0]).values() if members]
    assert [run.value("best") for run in found.runs] == [pytest.approx(0.61)]


def test_the_report_shows_the_search_and_what_counts(tmp_path: Path) -> None:
    searched(tmp_path / "runs")
    markdown, _, _ = report(tmp_path, [SPEECH])
    assert "3 of 32 found, 0 of them complete" in markdown
    assert "| fast | lr=0.001,clip=0.1 | 0 | accuracy 0.71 | finished | yes |" in markdown
    assert "| fast | lr=0.001,clip=1 | 0 | accuracy 0.41 | finished | — |" in markdown
    assert "| fast | 70.00 (n = 1) | 92.30 | partial |" in markdown
    assert "Loss: Raw Speech Commands" in markdown


def test_of_a_search_the_run_that_counts_decides_about_divergence(tmp_path: Path) -> None:
    """The best setting on validation data diverged at the end: the model diverges, though other settings did not."""
    searched(tmp_path / "runs", "sigmoid")
    best = tmp_path / "runs" / "speech" / "paper" / "sigmoid" / "lr=0.001,clip=0.1" / "seed0" / "record.json"
    best.write_text(json.dumps({**json.loads(best.read_text()), "outcome": "diverged", "diverged_at": 77}))
    markdown, _, _ = report(tmp_path, [SPEECH])
    (row,) = [line for line in markdown.splitlines() if line.startswith("| fast is stable on a length of 16,000")]
    assert "| not decided | fast does not diverge; sigmoid diverges; refine diverges; UR diverges |" in row
    assert "fast: not run; sigmoid: 1 of 1 runs diverged; refine: not run; UR: not run" in row


def test_results_on_the_subset_name_it(tmp_path: Path) -> None:
    """In the title of each chart and the caption of each table that has a result."""
    write_image_run(tmp_path / "runs" / "a", "fast", 0, "speech", 0.2, budget="desk", grid="speech")
    name = "esk budget, subset of 2,000 clips, not the paper's setting"
    section = read_report(tmp_path / "runs").sections[0]
    assert section.label == "tab:results_sc"
    assert section.charts and all(f"(d{name})" in chart.title for chart in section.charts)
    assert len(section.verdicts) == 2 and all(f" at d{name}" in table.caption for table in section.verdicts)
    assert section.tables and all(table.caption.startswith(f"D{name}. ") for table in section.tables)
    assert SPEECH.budget_name("paper", []) == "the paper's setting" and TONES.budget_name("desk", []) == "desk budget"


def test_a_divergence_stands_beside_the_number(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "a"
    write_image_run(place, "sigmoid", 0, "speech", 0.2, budget="desk", grid="speech")
    record = json.loads((place / "record.json").read_text())
    (place / "record.json").write_text(json.dumps({**record, "outcome": "diverged", "diverged_at": 77}))
    markdown, _, _ = report(tmp_path, [SPEECH])
    assert "| sigmoid | 20.00 (n = 1, 1 diverged) | 21.50 (diverged) | partial |" in markdown
    assert "diverged at update 77" in markdown


# Of each model, the error at the end by length.
ERRORS = {"sigmoid": {500: 0.1, 2000: 0.4, 8000: 0.8}, "fast": {500: 0.1, 2000: 0.2, 8000: 0.3}}


def at_lengths(folder: Path) -> list[LabRun]:
    for model, errors in ERRORS.items():
        for length, error in errors.items():
            for seed in (0, 1):
                place = folder / f"tones_{length}" / "desk" / model / f"seed{seed}"
                write_run(
                    place, model, seed, 3, task={"name": "tones", "length": length}, key=f"{model} {length} {seed}",
                    curve=lambda i, error=error, seed=seed: 1.0 - i * (1.0 - error) / 2 + seed / 100,  # type: ignore[misc]
                )  # fmt: skip
                declare(place, f"tones_{length}", "desk", model)
    return load(folder)[0]


def test_the_metric_against_the_length(tmp_path: Path) -> None:
    runs = at_lengths(tmp_path)
    groups = TONES.groups(runs)["desk"]
    assert [found.name for found in groups] == ["sigmoid", "fast"]
    table = lengths.table(groups, 0.5, 3)
    assert table.header == ("model", "T=500", "T=2000", "T=8000", "first length above 0.5")
    assert [(row[0], row[-1]) for row in table.rows] == [("sigmoid", "T=8000"), ("fast", "none")]
    assert lengths.table(groups, 0.5, 4).rows[1][-1] == "at none of the 3 lengths run"
    assert [row[1].split()[0] for row in table.rows] == ["0.105", "0.105"]
    chart = lengths.chart("stem", "title", groups, Looks(["sigmoid", "fast"]), 0.5)
    assert chart is not None
    curve = chart.series[0].updates
    assert curve.x == [500, 2000, 8000] and curve.mean == pytest.approx([0.105, 0.405, 0.805]) and curve.n == 2
    assert [(track.seed, track.updates) for track in chart.series[1].runs] == [
        (seed, [500, 2000, 8000]) for seed in (0, 1)
    ]
    assert {length: [part.name for part in parts] for length, parts in lengths.by_length(groups).items()} == {
        length: ["sigmoid", "fast"] for length in (500, 2000, 8000)
    }


def _at_length(folder: Path, model: str, length: int, error: float, outcome: str | None = "finished") -> None:
    place = folder / f"tones_{length}" / "desk" / model / "seed0"
    write_run(
        place, model, 0, 3, task={"name": "tones", "length": length}, key=f"{model} {length}", curve=lambda i: error,
        outcome=outcome,
    )  # fmt: skip
    declare(place, f"tones_{length}", "desk", model)


def test_an_unfinished_run_is_neither_above_nor_below(tmp_path: Path) -> None:
    for model, ends in {
        "sigmoid": {500: (0.1, "finished"), 2000: (0.9, None), 8000: (0.3, "finished")},
        "refine": {500: (0.1, "finished"), 2000: (0.7, "finished"), 8000: (0.3, "finished")},
        "fast": {500: (0.1, None), 2000: (0.7, "finished"), 8000: (0.1, "diverged")},
        "softsign": {500: (0.9, None)},
    }.items():
        for length, (error, outcome) in ends.items():
            _at_length(tmp_path, model, length, error, outcome)
    groups = TONES.groups(load(tmp_path)[0])["desk"]
    rows = {row[0]: row[1:] for row in lengths.table(groups, 0.5, 3).rows}
    assert rows == {
        "softsign": ("not complete", "—", "—", "—"),
        "sigmoid": ("0.1", "not complete", "0.3", "at none of the 2 lengths run"),
        "refine": ("0.1", "0.7", "0.3", "T=2000 (below again at T=8000)"),
        "fast": ("not complete", "0.7", "— (1 of 1 diverged)", "T=2000 of those run"),
    }
    chart = lengths.chart("stem", "title", groups, Looks([*rows]), 0.5)
    assert chart is not None
    assert {series.name: [track.updates for track in series.runs] for series in chart.series} == {
        "sigmoid": [[500, 8000]],
        "refine": [[500, 2000, 8000]],
        "fast": [[2000, 8000]],
    }
    assert lengths.chart("stem", "title", groups[:1], Looks(["softsign"]), 0.5) is None


def test_the_mean_is_of_the_complete_seeds(tmp_path: Path) -> None:
    at_lengths(tmp_path)
    (tmp_path / "tones_2000" / "desk" / "fast" / "seed1" / "record.json").unlink()
    groups = TONES.groups(load(tmp_path)[0])["desk"]
    assert lengths.table(groups, 0.5, 3).rows[1][2] == "0.2 (1 of 2 runs complete)"


def test_an_experiment_of_our_own_has_a_section_and_no_verdict(tmp_path: Path) -> None:
    assert {item.label for item in own_items()} == set(OWN)
    assert not {item.label for item in paper_items()} & set(OWN)
    at_lengths(tmp_path / "runs")
    markdown, page, _ = report(tmp_path, [SPEECH, TONES])
    assert "Not in the paper: an additional experiment." in markdown
    overview = [line for line in markdown.splitlines() if line.startswith("| tab:")]
    assert len(overview) == 1 and "| own:tones |" not in markdown
    assert "(own:tones)" in markdown and "the paper's setting" not in markdown.partition("## All runs")[0].lower()
    assert "T=8000: Which tone was heard" in page and "Other runs" not in markdown
    (tmp_path / "more").mkdir()
    write_run(tmp_path / "more" / "runs", "fast", 0)
    without, _, _ = report(tmp_path / "more", [SPEECH, TONES])
    assert "Which tone" not in without


def _with(folder: Path, model: str, seed: int, lines: list[dict[str, Any]]) -> None:
    write_run(folder, model, seed, evaluations=len(lines))
    path = folder / "metrics.jsonl"
    written = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [{**line, "stability": {"l0": found}} for line, found in zip(written, lines, strict=True)]
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_charts_of_the_monitor(tmp_path: Path) -> None:
    norms = [1e-3 * 2**part for part in range(16)]
    for seed in (0, 1):
        _with(
            tmp_path / f"{seed}",
            "fast",
            seed,
            [
                {"saturated": 0.0, "gradient_norms": [1.0] * 16},
                {"saturated": 0.1 + seed / 10, "gradient_norms": norms},
                {"saturated": None, "gradient_norms": [None] * 16},
            ],
        )
    runs, warnings = load(tmp_path)
    assert warnings == []
    share, gradient = stability_charts("stem", "title", [group("fast", "fast", runs)], Looks(["fast"]))
    assert (share.stem, gradient.stem) == ("stem_saturated", "stem_gradients")
    assert share.series[0].updates.x == [0, 50] and share.series[0].updates.mean == pytest.approx([0.0, 0.15])
    curve = gradient.series[0].updates
    assert curve.x == list(range(1, 17)) and curve.mean == pytest.approx(norms) and gradient.log_y


def test_no_records_of_the_monitor_no_charts(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "fast", 0)
    assert stability_charts("stem", "title", [group("fast", "fast", load(tmp_path)[0])], Looks(["fast"])) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"l0": {"gradient_norms": "many"}}, "stability.l0.gradient_norms"),
        ({"l0": {"gradient_norms": [1.0, "x"]}}, "stability.l0.gradient_norms"),
        ({"l0": {"gradient_norms": [0.0] * 10**4}}, "stability.l0.gradient_norms"),
        ({"l0": {"saturated": "all"}}, "stability.l0.saturated"),
        ({"l0": 3}, "stability.l0"),
        ([], "stability"),
    ],
)
def test_damaged_records_of_the_monitor_are_left_out(wrong: Any, said: str) -> None:
    found: list[tuple[str, str]] = []
    kept({"update": 1, "seconds": 1.0, "stability": wrong}, evaluation("mse"), found)
    assert [field for field, _ in found] == [said]
