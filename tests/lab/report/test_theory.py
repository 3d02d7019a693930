"""The items that need no training: found, shown and checked in place of "not run"."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatedrnn import cli, theory
from gatedrnn.lab.experiments import EXPERIMENTS
from gatedrnn.lab.report import make, make_report
from gatedrnn.lab.report.items import item_of
from gatedrnn.lab.report.theory import CHECKS
from tests.lab.report.records import write_run

ITEMS = [item_of(experiment) for experiment in EXPERIMENTS.values() if experiment.theory]
GATES = ("softsign", "sigmoid", "refine", "fast")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
TABLE = "| gate | order |\n| --- | --- |\n| fast | O(e^-e^z) |\n| a\\|b | 1 |\n\nWhat the columns are.\n"


def numbers() -> dict[str, Any]:
    """What the checks read, as gatedrnn theory writes it."""
    pairs = [(a, b) for i, a in enumerate(GATES) for b in GATES[:i] if (a, b) != ("refine", "sigmoid")]
    steps = {"fast": 53, "refine": 103, "sigmoid": 162, "softsign": None}
    return {
        "schema_version": 1,
        "orders": {f"{a}/{b}": {"higher_order": True} for a, b in pairs},
        "theorem": {"log10_ratios": {f"{a}/{b}": [0.1, 2.0] for a, b in pairs}},
        "first_step_below": {"gradient_descent": {**steps}, "rmsprop": {**steps}, "adam": {**steps, "refine": None}},
        "fig:demo": {"curves": {gate: {"gradient_descent_complement": [0.5] * 41} for gate in GATES}},
        "fits": {gate: {"largest_relative_deviation": 0.009} for gate in GATES},
    }


def write_theory(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "theory.json").write_text(json.dumps(numbers()))
    for name in ("fig_saturation", "fig_demo", "fig_gates_gradient", "fig_demo_other"):
        (folder / f"{name}.png").write_bytes(PNG)
    (folder / "tab_gates_comparison.md").write_text(TABLE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    write_run(tmp_path / "in" / "runs" / "a", "fast", 0, evaluations=3)
    return tmp_path


def reported(place: Path, **more: Any) -> tuple[str, str, list[str]]:
    warnings = make_report(place / "in" / "runs", place / "out", items=ITEMS, **more)
    return (place / "out" / "report.md").read_text(), (place / "out" / "index.html").read_text(), warnings


def verdicts(markdown: str) -> dict[str, str]:
    return dict(re.findall(r"^\| ((?:fig|tab):\S+) \| ([a-z ]+) \|", markdown.replace("\\_", "_"), re.MULTILINE))


@pytest.mark.parametrize("where", ["in/runs", "in/runs/deeper/theory", "in", "elsewhere"])
def test_the_five_items_are_shown(where: str, place: Path) -> None:
    """At, below and beside the runs they are found, elsewhere by the option."""
    if where == "in/runs":
        write_theory(place / "made")
        for path in (place / "made").iterdir():
            path.rename(place / "in" / "runs" / path.name)
    elif where == "in":
        write_theory(place / "made")
        for path in (place / "made").iterdir():
            path.rename(place / "in" / path.name)
    else:
        write_theory(place / where)
    markdown, page, warnings = reported(place, theory=place / where if where == "elsewhere" else None)
    assert warnings == []
    assert verdicts(markdown) == dict.fromkeys((item.label for item in ITEMS), "agrees")
    assert page.count('src="data:image/png;base64,') == 4
    assert (place / "out" / "figures" / "fig_demo.png").read_bytes() == PNG
    assert "![Toy problem with RMSprop and Adam](figures/fig_demo_other.png)" in markdown
    assert "| a\\|b | 1 |" in markdown and "What the columns are." in markdown
    assert "| fast 53, refine 103, sigmoid 162, softsign not reached | agrees |" in markdown


def test_without_them_they_are_not_run(place: Path) -> None:
    markdown, _, warnings = reported(place)
    assert set(verdicts(markdown).values()) == {"not run"}
    assert "run gatedrnn theory --out DIR, then add --theory DIR to gatedrnn report." in markdown
    assert warnings == []


def test_what_was_asked_for_and_is_not_there_is_an_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty").mkdir()
    arguments = [str(place / "in" / "runs"), "--out", str(place / "out"), "--theory", str(place / "empty")]
    assert cli.main(["report", *arguments]) == 2
    assert f"no results of gatedrnn theory in {place / 'empty'}" in capsys.readouterr().err
    assert not (place / "out").exists()


CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "fig:saturation": ("differs", lambda n: n["orders"]["fast/sigmoid"].update(higher_order=False)),
    "fig:demo": ("differs", lambda n: n["first_step_below"]["gradient_descent"].update(refine=50)),
    "fig:gates_gradient": ("differs", lambda n: n["theorem"]["log10_ratios"].update({"fast/sigmoid": [0.1, -0.1]})),
    "fig:demo_other": ("differs", lambda n: n["first_step_below"]["adam"].update(sigmoid=52)),
    "tab:gates_comparison": ("differs", lambda n: n["fits"]["fast"].update(largest_relative_deviation=0.011)),
}


@pytest.mark.parametrize("label", CHANGES)
def test_other_numbers_differ_and_missing_ones_decide_nothing(label: str, place: Path) -> None:
    write_theory(place / "in" / "runs" / "theory")
    path = place / "in" / "runs" / "theory" / "theory.json"
    verdict, change = CHANGES[label]
    found = numbers()
    change(found)
    path.write_text(json.dumps(found))
    assert {name for name, said in verdicts(reported(place)[0]).items() if said != "agrees"} == {label}
    assert verdicts(reported(place)[0])[label] == verdict
    without_fast = json.loads(json.dumps(numbers()).replace('"fast', '"faster'))
    path.write_text(json.dumps(without_fast))
    assert verdicts(reported(place)[0])[label] == ("agrees" if label == "fig:gates_gradient" else "partial")


def test_a_plateau_that_ends_early_differs(place: Path) -> None:
    write_theory(place / "in" / "runs" / "theory")
    found = numbers()
    found["fig:demo"]["curves"]["fast"]["gradient_descent_complement"][40] = 0.2
    (place / "in" / "runs" / "theory" / "theory.json").write_text(json.dumps(found))
    assert verdicts(reported(place)[0])["fig:demo"] == "differs"


@pytest.mark.parametrize("value", [True, None, "x", 10**400, [], {}, [[1]], -1])
def test_damaged_numbers_end_nothing(value: Any, place: Path) -> None:
    write_theory(place / "in" / "runs" / "theory")
    for field in numbers():
        (place / "in" / "runs" / "theory" / "theory.json").write_text(json.dumps({**numbers(), field: value}))
        markdown, _, warnings = reported(place)
        if field == "schema_version":
            assert set(verdicts(markdown).values()) == {"not run"}
            assert len(warnings) == 1 and warnings[0].startswith("theory.json")
        else:
            assert "partial" in verdicts(markdown).values()


def test_damaged_files_are_named(place: Path) -> None:
    write_theory(place / "in" / "runs" / "theory")
    (place / "in" / "runs" / "theory" / "fig_demo.png").write_text("<svg onload=alert(1)>")
    (place / "in" / "runs" / "theory" / "fig_saturation.png").unlink()
    (place / "in" / "runs" / "theory" / "tab_gates_comparison.md").write_text("| a | b |\n| --- | --- |\n| 1 |\n")
    markdown, page, warnings = reported(place)
    assert [warning.partition(":")[0] for warning in warnings] == [
        "fig_saturation.png",
        "fig_demo.png",
        "tab_gates_comparison.md",
    ]
    assert "<svg" not in page.partition("<script")[0] and page.count("data:image/png") == 2
    assert [verdicts(markdown)[label] for label in ("fig:saturation", "fig:demo", "fig:demo_other")] == [
        "partial",
        "partial",
        "agrees",
    ]
    assert not (place / "out" / "figures" / "fig_demo.png").exists()


def test_every_sentence_of_the_theory_has_a_check() -> None:
    assert set(CHECKS) == {sentence for item in ITEMS for sentence in item.expected}


@pytest.mark.slow
def test_the_real_theory_agrees(place: Path) -> None:
    theory.run(GATES, place / "made")
    markdown, _, warnings = reported(place, theory=place / "made")
    assert warnings == []
    assert verdicts(markdown) == dict.fromkeys((item.label for item in ITEMS), "agrees")
