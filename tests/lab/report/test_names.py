"""Names in records are words to show: none becomes a path, a link, a tag or a control sequence."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gatedrnn.cli.progress import shown
from gatedrnn.lab.report import folder, make, make_report
from tests.lab.report.records import item, write_run

EVIL = (
    "x/../../../../PWNED/evil",
    "/PWNED",
    "..",
    ".",
    "a" * 300,
    "l0\n\x1b[31m\u202e",
    "[/b][click](http://example.org) www.example.org ![x](y)",
    "</text><script>alert(1)</script>|`$x_$",
)


def rename(run: Path, name: str, task: bool = True) -> None:
    """The run with this name for its metric, for its layers (two of them) and maybe for its task."""
    for file in ("options.json", "record.json"):
        content: dict[str, Any] = json.loads((run / file).read_text())
        if file == "options.json":
            content["task"]["name"] = name if task else content["task"]["name"]
        else:
            content["metric"] = name
            for which in ("final", "best"):
                content[which][name] = content[which].pop("mse")
        (run / file).write_text(json.dumps(content))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line[name] = line.pop("mse")
        line["time_scales"] = {name: line["time_scales"]["l0"], f"{name}/2": line["time_scales"]["l0"]}
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("name", EVIL)
def test_no_name_becomes_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    write_run(tmp_path / "a" / "b" / "runs" / "declared", "fast", 0, evaluations=3)
    write_run(tmp_path / "a" / "b" / "runs" / "other", "fast", 1, evaluations=3, key="other")
    for run in ("declared", "other"):
        rename(tmp_path / "a" / "b" / "runs" / run, name, task=run == "other")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    out = tmp_path / "a" / "b" / "out"
    make_report(tmp_path / "a" / "b" / "runs", out, items=[item(models=("fast",), seeds=1)])
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert {path.relative_to(out).as_posix() for path in made} == {
        "index.html",
        "report.md",
        "report.json",
        *(
            f"figures/{stem}.{kind}"
            for stem in (
                "fig_adding_mse_paper",
                "fig_adding_mse_paper_time_scales_1",
                "fig_adding_mse_paper_time_scales_2",
                "other_1_metric",
                "other_1_loss",
                "other_1_time_scales_1",
                "other_1_time_scales_2",
            )
            for kind in ("png", "svg")
        ),
    }


def test_names_in_markdown_stay_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    for i, name in enumerate(EVIL):
        write_run(tmp_path / "runs" / f"- {i}. run", "fast", i, evaluations=3, key=f"key {i}", engine=name)
        rename(tmp_path / "runs" / f"- {i}. run", name)
    make_report(tmp_path / "runs", tmp_path / "out", items=[])
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert set(re.findall(r"(?<!\\)\]\(([^)]*)\)", markdown)) == {
        f"figures/{path.name}" for path in (tmp_path / "out" / "figures").iterdir()
    }
    assert not re.search(r"\w://|www\.|\x1b|\u202e", markdown)


def test_names_in_figures_stay_words(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", "fast", 0, evaluations=3, options={"forget_gate": EVIL[-1]}, engine=EVIL[-1])
    rename(tmp_path / "runs" / "a", EVIL[-1])
    make_report(tmp_path / "runs", tmp_path / "out", items=[])
    for path in (tmp_path / "out" / "figures").glob("*.svg"):
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert tags <= {"svg", "metadata", "RDF", "Work", "type", "format", "defs", "style", "g", "path", "text",
                        "use", "clipPath", "rect", "tspan"}  # fmt: skip


def test_a_warning_is_one_entry_of_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})
    write_run(tmp_path / "runs" / "good", "fast", 0, evaluations=3)
    for name in ("- minus", "+ plus", "1. one", "2) two"):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "options.json").write_text("{")
    make_report(tmp_path / "runs", tmp_path / "out", items=[])
    markdown = (tmp_path / "out" / "report.md").read_text()
    for start in ("\\- minus", "\\+ plus", "1\\. one", "2\\) two"):
        assert f"\n* {start}: skipped" in markdown


@pytest.mark.parametrize("name", ["../evil.png", "/evil.png", "figures/../../evil.png", "figures/a/b.png", "", "a b"])
def test_only_names_of_ours_are_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a file of a report"):
        folder.write_report(tmp_path / "out", {name: b"1"})
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("link", "listed"),
    [
        ("figures", ["figures", "figures/victim.png"]),
        ("elsewhere", ["elsewhere", "elsewhere/victim.png"]),
        ("index.html", ["index.html"]),
        (".index.html.1.tmp", ["index.html"]),
    ],
)
def test_a_manifest_cannot_lead_out_through_a_link(link: str, listed: list[str], tmp_path: Path) -> None:
    victims = tmp_path / "victims"
    victims.mkdir()
    (victims / "victim.png").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / link).symlink_to(victims if "." not in link else victims / "victim.png")
    (out / "report.json").write_text(
        json.dumps({"schema": 1, "kind": "gatedrnn report", "files": ["report.json", *listed]})
    )
    with pytest.raises(FileExistsError, match="which is not part of a report"):
        folder.check(out)
    assert [path.read_text() for path in victims.iterdir()] == ["mine"]


def test_progress_shows_a_name_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "terminal").open("w") as file:
        console = Console(file=file, force_terminal=True, width=100)
        with shown(console) as progress:
            progress(0, 1, "[/b] [red]")
    assert "[/b] [red]" in (tmp_path / "terminal").read_text()
