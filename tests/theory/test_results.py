"""theory.run: what is written, for names and for a user's own gates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gatedrnn import theory
from gatedrnn.files import check_folder, write
from gatedrnn.gates import Gate
from gatedrnn.theory.files import strict_json

FIGURES = ["fig_saturation", "fig_demo", "fig_gates_gradient", "fig_demo_other"]
FILES = {*(f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")), "theory.json", "tab_gates_comparison.md"}


class Hard(Gate):
    """A gate that reaches 1 at a finite z: outside the theory, but it must not break the run."""

    def _value(self, *z: Tensor) -> Tensor:
        return (0.5 + z[0] / 4).clamp(0, 1)

    def _complement(self, *z: Tensor) -> Tensor:
        return (0.5 - z[0] / 4).clamp(0, 1)

    def _log_value(self, *z: Tensor) -> Tensor:
        return torch.log(self._value(*z))

    def _log_complement(self, *z: Tensor) -> Tensor:
        return torch.log(self._complement(*z))

    def _derivatives(self, *z: Tensor) -> tuple[Tensor, ...]:
        return (torch.where(z[0].abs() < 2, 0.25, 0.0).to(z[0].dtype),)

    def _inverse(self, small: Tensor, above: Tensor) -> tuple[Tensor, ...]:
        return (torch.where(above, 2 - 4 * small, 4 * small - 2),)


def strictly(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in strict JSON")

    loaded: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return loaded


def test_a_run_with_gates_of_ones_own(tmp_path: Path, cubic: Gate) -> None:
    seen: list[tuple[int, int]] = []
    numbers = theory.run(
        ["sigmoid", cubic, Hard()], tmp_path / "a" / "b", lambda done, total, _: seen.append((done, total))
    )
    out = tmp_path / "a" / "b"
    assert {path.name for path in out.iterdir()} == FILES

    assert strictly((out / "theory.json").read_text()) == numbers
    assert set(numbers["exponents"]) == {"sigmoid", "Cubic()", "Hard()"}
    assert numbers["exponents"]["sigmoid"] == pytest.approx(-1.0, abs=1e-4)
    assert -1.2 < numbers["exponents"]["Cubic()"] < -1.01
    assert numbers["exponents"]["Hard()"] is None
    assert numbers["gates"]["Cubic()"] == {
        "repr": "Cubic()",
        "saturation": "not stated",
        "preactivations": 1,
        "label_of_one_variable": "Cubic()",
    }
    assert numbers["theorem"]["complement"][0] == 1e-2
    assert numbers["theorem"]["complement"][-1] == 1e-300
    assert numbers["orders"]["Cubic()/sigmoid"]["higher_order"]
    assert not numbers["orders"]["sigmoid/Cubic()"]["higher_order"]

    table = (out / "tab_gates_comparison.md").read_text()
    assert "| Cubic() | not stated | not derived |" in table
    assert [done for done, _ in seen] == list(range(seen[-1][1] + 1))

    for name in FIGURES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        drawing = (out / f"{name}.svg").read_text()
        assert "Cubic()</text>" in drawing  # text is text
        assert "<dc:date>" not in drawing


def test_every_number_drawn_is_in_the_file_and_runs_repeat(tmp_path: Path) -> None:
    numbers = theory.run(["fast"], tmp_path / "first")
    theory.run(["fast"], tmp_path / "second")
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    demo = numbers["fig:demo"]["curves"]["fast"]
    for curve in ("complement", "gradient_descent_complement", "law_complement"):
        assert len(demo[curve]) == len(numbers["fig:demo"]["tau"]) == 301
    assert numbers["fig:saturation"]["curves"]["fast"]["value"][120] == 0.5
    assert max(numbers["fig:gates_gradient"]["curves"]["fast"]["gradient"]) == pytest.approx(0.2788, abs=1e-3)
    assert numbers["first_step_below"]["rmsprop"]["fast"] == 73
    # The law drawn over the first iterations agrees with the flow where it was fitted.
    late = slice(200, 301)
    for flow, law in zip(demo["complement"][late], demo["law_complement"][late], strict=True):
        assert law == pytest.approx(flow, rel=0.03)


@pytest.mark.parametrize(
    ("gates", "error", "message"),
    [
        (["fast", "nope"], ValueError, "unknown gate 'nope'; known gates: sigmoid"),
        (["fast", "fast"], ValueError, "twice"),
        ([], ValueError, "no gates"),
        ("fast", TypeError, "list"),
        ([3], TypeError, "name or a Gate"),
    ],
)
def test_wrong_gates_are_refused_before_anything_is_written(
    gates: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        theory.run(gates, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotADirectoryError, match="not a folder"):
            check_folder(folder)
    check_folder(tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result"
    write(path, b"old")

    def fail(source: Path, target: Path) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(OSError, match="no space"):
            write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result"]


def test_strict_json() -> None:
    text = strict_json({"b": [1.0, math.nan, math.inf], "a": {"z": 1 / 3, "y": None}})
    assert strictly(text) == {"a": {"y": None, "z": 0.333333333333}, "b": [1.0, None, None]}
    assert text.index('"a"') < text.index('"b"')


@pytest.mark.parametrize("name", ["sigmoid", "fast"])
def test_colours_of_the_paper_are_kept(name: str, flow_of: Callable[[str], object]) -> None:
    from gatedrnn.theory.palette import looks

    alone, together = looks([name]), looks(["Cubic()", "softsign", "sigmoid", "refine", "fast"])
    assert alone[name] == together[name]
    assert len({look.colour for look in together.values()}) == 5


def test_the_document_shows_what_the_command_measures(tmp_path: Path) -> None:
    """The full run: the numbers promised, and the tables of docs/theory.md as the command writes them."""
    numbers = theory.run(out=tmp_path)
    steps = numbers["first_step_below"]
    for optimiser in ("rmsprop", "adam"):
        paper = {name: steps[optimiser][name] or math.inf for name in ("softsign", "sigmoid", "refine", "fast")}
        assert min(paper, key=lambda name: paper[name]) == "fast"
        assert steps[optimiser]["iterated_fast"] < steps[optimiser]["fast"]
    assert numbers["fits"]["fast"]["largest_relative_deviation"] < 0.03
    ratios = numbers["theorem"]["ratios"]
    assert ratios["fast/sigmoid"] == sorted(ratios["fast/sigmoid"])
    assert ratios["sigmoid/softsign"][-1] == pytest.approx(1e300)
    assert max(ratios["refine/sigmoid"]) <= 2.0

    document = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    assert (tmp_path / "tab_gates_comparison.md").read_text() in document
    for name in ("sigmoid", "refine", "fast", "iterated_fast", "polynomial"):
        measured = numbers["tau_times_complement"][name]
        row = " | ".join(f"{measured[f'1e{p}']:.3g}" for p in (3, 6, 9, 12))
        assert re.search(rf"^\| {name} \| {re.escape(row)} \|$", document, re.MULTILINE), f"{name}: {row}"
    levels = numbers["theorem"]["complement"]
    for pair in ("fast/sigmoid", "iterated_fast/sigmoid", "polynomial/sigmoid", "refine/sigmoid", "sigmoid/softsign"):
        row = " | ".join(f"{ratios[pair][levels.index(y)]:.3g}" for y in (1e-2, 1e-10, 1e-100, 1e-300))
        assert f"| {pair} | {row} |" in document, f"{pair}: {row}"
