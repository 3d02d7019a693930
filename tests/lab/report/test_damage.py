"""Every field of every file of a run, damaged in every way: the report names the file and tells the rest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatedrnn import cli
from gatedrnn.lab.experiments import PaperValue
from gatedrnn.lab.report import make, make_report
from gatedrnn.lab.report.runs import load
from tests.lab.report.records import declare, item, mse, write_run

FILES = ("options.json", "environment.json", "record.json", "metrics.jsonl")
NASTY: tuple[Any, ...] = (
    True, False, None, "", "NaN", "x" * 10_000, 10**400, -(10**400), -1, 0, 1.5, 1e308, 1e299, -1e299, 5e-324, float("nan"), float("inf"),
    [], [1], [[[]]], {}, {"a": {"b": [1]}}, {"l0": 3}, {"l0": {"mean": "x", "std": [1]}}, {"": True},
)  # fmt: skip
#: Damages that no reader could take for the field's own value.
NEVER: dict[str, tuple[Any, ...]] = {
    "number": (True, "", "NaN", 10**400, [], [1], {}),
    "text": (True, "", 10**400, -1, [], {}, 1.5),
    "object": (True, "", "NaN", 10**400, -1, [1]),
    "truth": (None, "", 10**400, -1, [], {}),
    "list": ("NaN", 10**400, {}, [1]),
}
#: What the report reads, by file and field, and which damages it must have seen.
READ: dict[str, dict[tuple[str, ...], str]] = {
    "options.json": {
        ("key",): "text", ("task",): "object", ("task", "name"): "text", ("model",): "object", ("model", "cell"): "text",
        ("model", "forget_gate"): "text", ("training",): "object", ("training", "seed"): "number", ("training", "target"): "number",
        ("training", "threads"): "number", ("schema",): "number", ("kind",): "text", ("declared",): "object",
        ("declared", "grid"): "text", ("declared", "budget"): "text", ("declared", "model"): "text", ("declared", "seed"): "number",
        ("declared", "task"): "text", ("model", "tied"): "list",
    },
    "environment.json": {("engine",): "text", ("processor",): "text", ("schema",): "number", ("kind",): "text"},
    "record.json": {
        ("outcome",): "text", ("metric",): "text", ("lower_is_better",): "truth", ("seconds",): "number", ("updates_a_second",): "number",
        ("final",): "object", ("final", "mse"): "number", ("best",): "object", ("best", "mse"): "number", ("diverged_at",): "number",
        ("updates",): "number", ("final", "update"): "number", ("best", "update"): "number", ("fingerprint",): "object",
        ("fingerprint", "train"): "text", ("notes",): "list", ("key",): "text", ("schema",): "number", ("kind",): "text", ("metric_unit",): "text", ("metric_scale",): "text",
        ("validation",): "object", ("validation", "epoch"): "number", ("test",): "object", ("test", "mse"): "number", ("seconds_an_epoch",): "number",
    },
    "metrics.jsonl": {
        ("update",): "number", ("seconds",): "number", ("epoch",): "number", ("mse",): "number", ("loss",): "number", ("time_scales",): "object",
        ("time_scales", "l0"): "object", ("time_scales", "l0", "mean"): "number", ("time_scales", "l0", "std"): "number",
        ("time_scales", "l0", "quantiles"): "object", ("time_scales", "l0", "quantiles", "0.5"): "number",
    },
}  # fmt: skip


def paths(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field, and the whole."""
    yield place
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*place, name))


def replaced(value: Any, place: tuple[str, ...], by: Any) -> Any:
    if not place:
        return by
    return {**value, place[0]: replaced(value.get(place[0]), place[1:], by)}


def originals(folder: Path) -> dict[str, Any]:
    """The files of a run as values; of the metrics, the line in the middle."""
    files = {name: json.loads((folder / name).read_text()) for name in FILES[:3]}
    return {**files, "metrics.jsonl": json.loads((folder / "metrics.jsonl").read_text().splitlines()[2])}


def damage(folder: Path, file: str, place: tuple[str, ...], by: Any) -> None:
    """Put a value into the place of a field. In the metrics, in one line."""
    value = json.dumps(replaced(originals(folder)[file], place, by))
    if file == "metrics.jsonl":
        lines = (folder / file).read_text().splitlines()
        lines[2] = value
        value = "\n".join(lines) + "\n"
    (folder / file).write_text(value)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs good and bad, the latter to be damaged; pictures take half a second and are left out."""
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    write_run(tmp_path / "runs" / "good", "sigmoid", 0, evaluations=5)
    write_run(tmp_path / "whole", "fast", 0, evaluations=5)
    declare(tmp_path / "whole", "adding", "paper", "fast", {"task": "adding"})
    lines = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()
    numbered = [json.dumps({**json.loads(line), "epoch": i}) for i, line in enumerate(lines)]
    (tmp_path / "whole" / "metrics.jsonl").write_text("\n".join(numbered) + "\n")
    path = tmp_path / "whole" / "record.json"
    record = json.loads(path.read_text())
    further = {
        "metric_unit": "squares", "metric_scale": "log", "seconds_an_epoch": 3.0, "test": {"loss": 0.1, "mse": 0.1},
        "validation": {**record["best"], "update": 50, "epoch": 1}, "fingerprint": {"train": "1f"},
    }  # fmt: skip
    path.write_text(json.dumps({**record, **further}))
    return tmp_path


def renewed(place: Path) -> Path:
    bad = place / "runs" / "bad"
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(place / "whole", bad)
    return bad


def reported(place: Path, declared: bool) -> list[str]:
    """A report of both runs, as an item of the paper or not; the good one is in it."""
    values = {"fast": {"adding": PaperValue(1.0, 0.1), "time": PaperValue(2.0)}, "sigmoid": {"time": PaperValue(1.0)}}
    columns = {"adding": "% test accuracy", "time": "seconds per epoch on adding"}
    items = [item(models=("sigmoid", "fast"), seeds=1, values=values, columns=columns)] if declared else []
    warnings = make_report(place / "runs", place / "out", items=items)
    page = (place / "out" / "index.html").read_text()
    assert "<td>good</td>" in page
    assert all(warning.startswith("bad: ") for warning in warnings)
    return warnings


def test_the_walk_finds_every_field(place: Path) -> None:
    walked = {file: set(paths(value)) for file, value in originals(place / "whole").items()}
    for file, fields in READ.items():
        assert fields.keys() <= walked[file]
    assert sum(len(found) for found in walked.values()) > 60


@pytest.mark.parametrize("file", FILES)
def test_a_field_that_is_read_and_wrong_is_named(file: str, place: Path) -> None:
    for field, kind in READ[file].items():
        for value in NEVER[kind]:
            damage(renewed(place), file, field, value)
            runs, warnings = load(place / "runs")
            assert any(warning.startswith("bad: ") and file in warning for warning in warnings), (field, value)
            assert "good" in [run.name for run in runs]


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_field_does_not_end_the_report(file: str, place: Path) -> None:
    """Each field once, the damages in turn."""
    for i, field in enumerate(paths(originals(place / "whole")[file])):
        damage(renewed(place), file, field, NASTY[i % len(NASTY)])
        reported(place, declared=i % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_every_field_and_every_damage(file: str, place: Path) -> None:
    for field in paths(originals(place / "whole")[file]):
        for i, value in enumerate(NASTY):
            damage(renewed(place), file, field, value)
            reported(place, declared=i % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("value", NASTY, ids=lambda value: repr(value)[:20])
def test_damaged_numbers_can_be_drawn(value: Any, tmp_path: Path) -> None:
    """With the pictures, for what reaches them."""
    write_run(tmp_path / "runs" / "good", "sigmoid", 0, evaluations=5)
    for i, field in enumerate(READ["metrics.jsonl"]):
        write_run(tmp_path / "runs" / f"bad{i}", "fast", i, evaluations=5)
        damage(tmp_path / "runs" / f"bad{i}", "metrics.jsonl", field, value)
    make_report(tmp_path / "runs", tmp_path / "out", items=[item(models=("sigmoid", "fast"), seeds=10)])


def test_numbers_at_the_limit_can_be_drawn(tmp_path: Path) -> None:
    values = (1e299, -1e299, 5e-324)
    for seed, value in enumerate(values):
        write_run(tmp_path / "runs" / f"{seed}", "fast", seed, evaluations=4)
        spread = {"mean": abs(value), "std": abs(value), "quantiles": {"0.5": value}}
        for field, by in {"mse": value, "loss": values[seed - 1], "seconds": abs(value)}.items():
            damage(tmp_path / "runs" / f"{seed}", "metrics.jsonl", (field,), by)
        damage(tmp_path / "runs" / f"{seed}", "metrics.jsonl", ("time_scales", "l0"), spread)
        damage(tmp_path / "runs" / f"{seed}", "record.json", ("best", "mse"), min(value, mse("fast", seed, 0)))
    wanted = item(models=("fast",), values={"fast": {"adding": PaperValue(1.0, 1.0)}}, columns={"adding": "% of it"})
    for items in ([wanted], []):
        assert make_report(tmp_path / "runs", tmp_path / "out", items=items) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_several_damages_at_once(data: st.DataObject, place: Path) -> None:
    bad = renewed(place)
    for _ in range(data.draw(st.integers(1, 4))):
        file = data.draw(st.sampled_from(FILES))
        try:
            field = data.draw(st.sampled_from(sorted(paths(originals(bad)[file]))))
        except (AttributeError, TypeError):  # what is no object any more is damaged enough
            continue
        damage(bad, file, field, data.draw(st.sampled_from(NASTY) | JSON))
    reported(place, declared=data.draw(st.booleans()))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "9" * 5000, "", "\x00", "null"])
@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_no_record(file: str, text: str, place: Path) -> None:
    (renewed(place) / file).write_text(text + "\n")
    (warning,) = reported(place, declared=True)
    assert file in warning


@pytest.mark.parametrize("file", FILES)
def test_what_is_not_a_file(file: str, place: Path) -> None:
    path = renewed(place) / file
    path.unlink()
    path.mkdir()
    (warning,) = reported(place, declared=True)
    assert file in warning and "not a file" in warning


def test_a_damaged_environment_costs_no_run(place: Path) -> None:
    (renewed(place) / "environment.json").write_text("{")
    runs, _ = load(place / "runs")
    assert [(run.name, run.outcome) for run in runs] == [("bad", "finished"), ("good", "finished")]
    assert runs[0].clock == "unknown engine, 2 threads, unknown processor"


def test_a_damaged_record_leaves_the_run_unfinished(place: Path) -> None:
    (renewed(place) / "record.json").write_text("{")
    runs, (warning,) = load(place / "runs")
    assert (runs[0].ended, runs[0].complete) == ("unfinished at update 200", False)
    assert warning.startswith("bad: record.json is damaged")


def test_updates_that_stand_twice_are_noticed(place: Path) -> None:
    path = renewed(place) / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    second = [line.replace('"mse": 0.17', '"mse": 0.01') for line in lines[1:4]]
    path.write_text("".join([*lines[:3], *second, *lines[3:]]))
    runs, warnings = load(place / "runs")
    assert [line["update"] for line in runs[0].metrics] == [0, 50, 100, 150, 200]
    assert runs[0].metrics[1]["mse"] == 0.17
    assert warnings == [
        "bad: metrics.jsonl: update 50 occurs more than once (and 2 more): two processes may have written this "
        "file; the first line of each update is used"
    ]


def test_updates_out_of_order_are_noticed(place: Path) -> None:
    path = renewed(place) / "metrics.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    runs, warnings = load(place / "runs")
    assert [line["update"] for line in runs[0].metrics] == [0, 50, 100, 150, 200]
    assert warnings == ["bad: metrics.jsonl: the updates are not in order; sorted"]


def test_an_unknown_outcome_leaves_the_run_unfinished(place: Path) -> None:
    damage(renewed(place), "record.json", ("outcome",), "garbage")
    runs, (warning,) = load(place / "runs")
    assert (runs[0].outcome, runs[0].complete) == ("unfinished", False)
    assert warning.startswith('bad: record.json: outcome is "garbage", expected one of finished, ')


@pytest.mark.parametrize("field", [("updates",), ("final", "update"), ("best", "update"), ("validation", "update")])
def test_no_update_is_negative(field: tuple[str, ...], place: Path) -> None:
    damage(renewed(place), "record.json", field, -5)
    (warning,) = load(place / "runs")[1]
    assert warning == f"bad: record.json: {'.'.join(field)} is -5, expected a non-negative integer; ignored"


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_metrics_without_their_last_lines_are_noticed(lines: int, place: Path) -> None:
    path = renewed(place) / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    ends = f"ends at update {50 * (lines - 1)}" if lines else "has no evaluation"
    assert load(place / "runs")[1] == [f"bad: metrics.jsonl {ends}, but in record.json, updates is 200"]


@pytest.mark.parametrize("which", ["final", "best", "validation"])
def test_a_result_that_the_metrics_do_not_have_is_noticed(which: str, place: Path) -> None:
    damage(renewed(place), "record.json", (which, "mse"), 0.25)
    assert load(place / "runs")[1] == [f"bad: record.json: {which}.mse is 0.25, but metrics.jsonl has 0.17"]


@pytest.mark.parametrize("outcome", ["finished", "target_reached", "stopped_early", "budget_spent", "diverged"])
def test_runs_of_every_outcome_agree_with_themselves(outcome: str, place: Path) -> None:
    damage(renewed(place), "record.json", ("outcome",), outcome)
    if outcome == "diverged":  # after the last evaluation
        damage(place / "runs" / "bad", "record.json", ("updates",), 207)
    runs, warnings = load(place / "runs")
    assert (runs[0].outcome, warnings) == (outcome, [])


def test_only_what_diverged_ends_after_its_last_evaluation(place: Path) -> None:
    damage(renewed(place), "record.json", ("updates",), 207)
    assert len(load(place / "runs")[1]) == 1


def test_the_command_ends_well(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(renewed(place), "metrics.jsonl", ("time_scales",), 3)
    assert cli.main(["report", str(place / "runs"), "--out", str(place / "out")]) == 0
    assert "warning: bad: metrics.jsonl, line 3: time_scales is 3, expected an object" in capsys.readouterr().err
