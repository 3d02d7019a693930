"""Times of updates that were measured apart from the runs: read, checked, and used wherever time is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.analysis import Middle, middle_of
from gatedrnn.lab.experiments import PaperValue
from gatedrnn.lab.report import make, make_report
from gatedrnn.lab.report.charts import TIMED_APART
from gatedrnn.lab.report.claims import NEAR, Comparable, TimeRatio, near
from gatedrnn.lab.report.items import Item, paper_items
from gatedrnn.lab.report.make import read_report
from gatedrnn.lab.report.runs import Slot, load
from gatedrnn.lab.report.tables import WALL_CLOCK
from gatedrnn.lab.report.update_times import UpdateTimes, find, paper_ratio
from tests.lab.report.records import image_item, item, write_image_run, write_sweep

CLOCK = "cpu engine, 1 thread, quiet processor"


def entry(model: str, rounds: list[float], **more: Any) -> dict[str, Any]:
    """One of the paper's setting of adding, as records.item declares it."""
    place = {"grid": "adding", "budget": "paper", "task": "adding", "model": model, "seed": 0, "key": f"{model}-0"}
    return {**place, "engine": "cpu: native kernels", "threads": 1, "rounds": rounds, **more}


def write_times(folder: Path, entries: list[Any], **more: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    machine = {"processor": "quiet processor", "cores": 2}
    record = {"schema": 1, "kind": "gatedrnn update times", "machine": machine, "updates": entries, **more}
    (folder / "update_times.json").write_text(json.dumps(record))


def found_in(folder: Path, items: list[Item] | None = None) -> tuple[UpdateTimes | None, list[str]]:
    warnings: list[str] = []
    return find(folder, items or [item()], warnings), warnings


def test_the_middle_of_rounds() -> None:
    assert middle_of([3.0, 1.0, 2.0, 5.0, 4.0]) == Middle(3.0, 2.0, 4.0)
    assert middle_of([0.5]) == Middle(0.5, 0.5, 0.5)


def test_time_is_updates_times_the_time_of_one(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast", "sigmoid"), seeds=1)
    write_times(tmp_path, [entry("fast", [0.4, 0.2, 0.3])])
    times, warnings = found_in(tmp_path)
    assert warnings == [] and times is not None
    sigmoid, fast = sorted((times.retimed(run) for run in load(tmp_path)[0]), key=lambda run: run.key, reverse=True)
    assert [line["seconds"] for line in fast.metrics[:3]] == pytest.approx([0.0, 0.3 * 50, 0.3 * 100])
    assert fast.record["updates_a_second"] == pytest.approx(1 / 0.3)
    assert fast.clock == f"{CLOCK} (time of one update)"
    # Nobody measured the other: its seconds are its own, on a clock of its own.
    assert [line["seconds"] for line in sigmoid.metrics[:3]] == [0.0, 1.0, 2.0]
    assert (sigmoid.clock, sigmoid.update_time) == ("cpu engine, 2 threads, test processor", None)


def test_an_epoch_takes_its_updates(tmp_path: Path) -> None:
    write_image_run(tmp_path / "a", "fast", 0, "psmnist", 0.5)
    declared = image_item(("fast",), tasks=("psmnist",))
    place = {"grid": "images", "budget": "desk", "task": "psmnist", "key": "psmnist-fast-0"}
    write_times(tmp_path, [entry("fast", [0.1], **place)])
    times, warnings = found_in(tmp_path, [declared])
    assert warnings == [] and times is not None
    (run,) = load(tmp_path)[0]
    assert times.retimed(run).seconds_an_epoch == pytest.approx(450 * 0.1)


def test_the_same_update_at_another_budget_is_used_and_not_listed(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast",), seeds=1)
    write_times(tmp_path, [entry("fast", [0.3], measured_as="adding/desk")])
    times, warnings = found_in(tmp_path)
    assert warnings == [] and times is not None
    assert times.retimed(load(tmp_path)[0][0]).metrics[1]["seconds"] == pytest.approx(15.0)
    assert times.settings() == [] and times.measured == {}
    assert "update-times" not in [section.anchor for section in read_report(tmp_path, [item()]).sections]


def test_charts_and_tables_against_time_use_them_and_say_so(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast", "sigmoid", "softsign"))
    entries = [entry(model, [second]) for model, second in (("fast", 0.3), ("sigmoid", 0.2), ("softsign", 0.2))]
    against_time = item(view="seconds", expected=("fast is first among the gates",))
    before = read_report(tmp_path, [against_time])
    write_times(tmp_path, entries)
    after = read_report(tmp_path, [against_time])
    assert [TIMED_APART in document.charts()[0].note for document in (before, after)] == [False, True]
    assert "idle machine (update_times.json)" in TIMED_APART
    assert after.charts()[0].clocks == [f"{CLOCK} (time of one update)"]
    (fast,) = [series for series in after.charts()[0].series if series.name == "fast"]
    assert fast.runs[0].seconds[:2] == pytest.approx([0.0, 15.0])
    (section,) = [section for section in after.sections if section.label == "fig:adding_mse"]
    (table,) = [table for table in section.tables if f"Times measured on: {fast_clock()}." in table.caption]
    assert WALL_CLOCK not in table.caption
    # One update takes 0.3 s, whatever the seed; 800 ± 50 updates to the threshold.
    assert [row[2:] for row in table.rows if row[0] == "fast"] == [("3.333", "240 ± 15 (95 %: 202.7 … 277.3)")]
    (tmp_path / "sigmoid" / "seed0" / "record.json").unlink()  # unfinished: the time of its update is known
    (section,) = [s for s in read_report(tmp_path, [against_time]).sections if s.label == "fig:adding_mse"]
    (table,) = [table for table in section.tables if f"Times measured on: {fast_clock()}." in table.caption]
    assert [row[2] for row in table.rows] == ["5", "5", "3.333"]
    (section,) = [section for section in before.sections if section.label == "fig:adding_mse"]
    (table,) = [table for table in section.tables if "Times measured on: cpu engine, 2 threads" in table.caption]
    assert WALL_CLOCK in table.caption
    # The list of all runs keeps what their own clocks said.
    (every,) = [table for section in after.sections for table in section.tables if section.anchor == "all-runs"]
    assert {row[-1] for row in every.rows} == {"cpu engine, 2 threads, test processor"}


def fast_clock() -> str:
    return f"{CLOCK} (time of one update)"


def test_ratios_stand_beside_the_papers(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast",), seeds=1)
    values = {
        model: {"time": PaperValue(value)} for model, value in (("sigmoid", 10.0), ("fast", 10.2), ("refine", 20.0))
    }
    printed = item(models=("sigmoid", "fast", "refine"), columns={"time": "seconds per epoch on adding"}, values=values)
    write_times(
        tmp_path,
        [entry("sigmoid", [1.0, 2.0, 4.0]), entry("fast", [1.02, 2.04, 4.08]), entry("refine", [1.3, 2.9, 6.0])],
    )
    (section,) = [s for s in read_report(tmp_path, [printed]).sections if s.anchor == "update-times"]
    assert section.verdicts[0].rows == [
        ("adding/paper", "fast ÷ sigmoid", "1.020 (1.020 … 1.020)", "1.020", "agrees"),
        ("adding/paper", "refine ÷ fast", "1.422 (1.348 … 1.446)", "1.961", "differs"),
    ]
    assert section.tables[0].rows[0] == ("adding/paper", "sigmoid", "2", "1.5 … 3", "3", CLOCK)
    # At desk budget the same ratio has no verdict: the models are smaller than the paper's.
    desk = item("desk", models=("sigmoid", "fast"), columns=printed.columns, values=values)
    write_times(tmp_path, [entry(model, [1.0], budget="desk") for model in ("sigmoid", "fast")])
    (section,) = [s for s in read_report(tmp_path, [desk]).sections if s.anchor == "update-times"]
    assert section.verdicts[0].rows == [("adding/desk", "fast ÷ sigmoid", "1.000 (1.000 … 1.000)", "1.020", "—")]


def test_the_column_of_ratios_is_that_of_the_rounds(tmp_path: Path) -> None:
    place = {"grid": "images", "budget": "desk", "task": "psmnist"}
    rounds = {"sigmoid": [1.0, 2.0, 3.0], "fast": [1.5, 2.0, 6.0]}
    for model in rounds:
        for seed in range(2):
            write_image_run(tmp_path / f"{model}{seed}", model, seed, "psmnist", 0.5)
    write_times(tmp_path, [entry(m, times, **place, key=f"psmnist-{m}-0") for m, times in rounds.items()])
    values = {model: {"psmnist": PaperValue(95.0), "time": PaperValue(10.0)} for model in rounds}
    (section, *_) = read_report(tmp_path, [image_item(tuple(rounds), ("psmnist",), seeds=2, values=values)]).sections
    # Medians of both are 2 s: 900 seconds an epoch, without a spread; of the ratios 1.5, 1 and 2 the median is 1.5.
    assert [row[4:] for row in section.verdicts[0].rows] == [("15", "10.0", "1", "1"), ("15", "10.0", "1.5", "1")]


def test_the_papers_ratios() -> None:
    """As the paper's text and tables have them, to two digits."""
    items = paper_items()
    found = {
        (grid, model, other): paper_ratio(items, Slot(grid, "paper", task, "", 0), model, other)
        for grid, task in (
            ("large_psmnist", "psmnist"),
            ("small_psmnist", "psmnist"),
            ("ptb", "ptb"),
            ("adding", "adding"),
        )
        for model, other in (("fast", "sigmoid"), ("refine", "fast"), ("iterated_fast", "fast"))
    }
    assert {key: None if ratio is None else round(ratio, 2) for key, ratio in found.items()} == {
        ("large_psmnist", "fast", "sigmoid"): 1.03,
        ("large_psmnist", "refine", "fast"): 1.54,
        ("large_psmnist", "iterated_fast", "fast"): 1.07,
        ("small_psmnist", "fast", "sigmoid"): 1.11,
        ("small_psmnist", "refine", "fast"): 1.55,
        ("small_psmnist", "iterated_fast", "fast"): None,
        ("ptb", "fast", "sigmoid"): 1.06,
        ("ptb", "refine", "fast"): 1.34,
        ("ptb", "iterated_fast", "fast"): None,
        **{("adding", *pair): None for pair in (("fast", "sigmoid"), ("refine", "fast"), ("iterated_fast", "fast"))},
    }


def test_near_is_decided_by_the_middle_half() -> None:
    assert NEAR == 0.05
    assert near(Middle(1.0, 0.96, 1.04), 1.0) is True
    assert near(Middle(1.0, 0.94, 1.04), 1.0) is None
    assert near(Middle(1.2, 1.06, 1.3), 1.0) is False
    assert near(Middle(0.9, 0.8, 0.94), 1.0) is False


def test_a_ratio_as_a_sentence(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast", "sigmoid"), seeds=1)
    claim = TimeRatio("fast", "sigmoid", 1.02, "adding")
    declared = item(models=("fast", "sigmoid"))

    def checked() -> tuple[bool | None, str]:
        times, _ = found_in(tmp_path, [declared])
        runs = load(tmp_path)[0]
        runs = runs if times is None else [times.retimed(run) for run in runs]
        found = claim.check({group.model: group for group in declared.groups(runs)["paper"]}, None)
        return found.holds, found.seen

    assert checked() == (None, "not measured separately from the runs")
    write_times(tmp_path, [entry("sigmoid", [1.0, 2.0]), entry("fast", [1.0, 2.0])])
    assert checked() == (True, "fast ÷ sigmoid: 1.000 (1.000 … 1.000)")
    write_times(tmp_path, [entry("sigmoid", [1.0, 2.0]), entry("fast", [1.5, 3.0])])
    assert checked() == (False, "fast ÷ sigmoid: 1.500 (1.500 … 1.500)")
    # Of another machine or number of threads: no ratio.
    write_times(tmp_path, [entry("sigmoid", [1.0, 2.0]), entry("fast", [1.5, 3.0], threads=2)])
    assert checked() == (None, "not measured separately from the runs")
    claim = TimeRatio("refine", "sigmoid", 1.59, "adding")
    assert checked() == (None, "refine: not run")


def test_comparable_is_within_a_factor_of_two(tmp_path: Path) -> None:
    write_sweep(tmp_path, ("fast", "sigmoid", "softsign", "NRU"), engine="cpu: native kernels")
    runs = {g.model: g for g in item(models=("fast", "sigmoid", "softsign", "NRU")).groups(load(tmp_path)[0])["paper"]}
    # 800 ± 50 updates; the sigmoid 1200, the NRU 650; softsign never.
    assert Comparable("fast", "NRU").check(runs, 0.02, "seconds").holds is True
    assert Comparable("fast", "sigmoid").check(runs, 0.02).holds is True
    assert Comparable("fast", "chrono").check(runs, 0.02).seen == "chrono: not run"
    assert Comparable("fast", "softsign").check(runs, 0.02).holds is not True
    assert Comparable("fast", "sigmoid", at=0.02).check(runs, None).holds is True
    assert Comparable("fast", "softsign", at=0.02).check(runs, 0.2).holds is not True  # all start below 0.2


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no rounds": ({"rounds": []}, "rounds is [], expected a list of positive numbers"),
    "zero": ({"rounds": [0.0]}, "rounds is [0.0], expected a list of positive numbers"),
    "text": ({"rounds": ["fast"]}, 'rounds is ["fast"], expected a list of positive numbers'),
    "threads": ({"threads": -1}, "threads is -1, expected a non-negative integer"),
    "engine": ({"engine": None}, "engine is null, expected a string"),
    "stale": ({"key": "another"}, "options differ from those currently declared for adding/paper/fast"),
    "other model": ({"key": "sigmoid-0"}, "options differ from those currently declared for adding/paper/fast"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_entry_is_named_and_left_out(name: str, tmp_path: Path) -> None:
    change, said = WRONG[name]
    write_times(tmp_path, [entry("sigmoid", [1.0]), {**entry("fast", [1.0]), **change}])
    times, warnings = found_in(tmp_path)
    assert warnings == [f"update_times.json, entry 2: {said}; ignored"]
    assert times is not None and [place.model for place in times.by_place] == ["sigmoid"]


@pytest.mark.parametrize("written", [5, None, [], "x"])
def test_an_entry_that_is_none(written: Any, tmp_path: Path) -> None:
    write_times(tmp_path, [written])
    assert found_in(tmp_path)[1][0].startswith("update_times.json, entry 1: is ")


def test_missing_fields_are_named(tmp_path: Path) -> None:
    short = entry("fast", [1.0])
    del short["rounds"], short["engine"]
    write_times(tmp_path, [short])
    assert found_in(tmp_path)[1] == ["update_times.json, entry 1: has no engine, rounds; ignored"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "update_times.json is damaged: "),
        ("[]", "update_times.json is damaged: not a JSON object; ignored"),
        ('{"kind": "gatedrnn update times", "schema": 2}', "update_times.json: written in version 2"),
        ('{"kind": "gatedrnn record", "schema": 1}', "update_times.json: expected a 'gatedrnn update times'"),
    ],
)
def test_a_damaged_file_is_named(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "update_times.json").write_text(content)
    times, warnings = found_in(tmp_path)
    assert times is None
    assert len(warnings) == 1 and warnings[0].startswith(said) and warnings[0].endswith("; ignored")


def test_the_report_survives_any_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    write_sweep(tmp_path / "runs", ("fast",), seeds=1)
    for value in (5, {}, [[]], "<script>", None):
        write_times(tmp_path / "runs", [], updates=value, machine=value)
        warnings = make_report(tmp_path / "runs", tmp_path / "out", items=[item(models=("fast",))])
        assert any(warning.startswith("update_times.json") for warning in warnings)
    assert "<script>alert" not in (tmp_path / "out" / "report.md").read_text()
