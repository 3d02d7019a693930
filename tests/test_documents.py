"""Every document with a command or a name in it is executed or checked."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest

from gatedrnn.cli import main
from gatedrnn.cli.list import gate_table
from gatedrnn.lab.data import SETS

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
named = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def _blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)


def test_documents_and_examples_are_found() -> None:
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= {path.name for path in DOCUMENTS}
    assert len(EXAMPLES) >= 3
    assert sum(len(_blocks(document, "python")) for document in DOCUMENTS) >= 4


@named
def test_python_blocks_run(document: Path) -> None:
    """In order, in one namespace, as a reader would."""
    namespace: dict[str, object] = {}
    for block in _blocks(document, "python"):
        exec(compile(block, str(document), "exec"), namespace)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@named
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


@named
def test_names_exist(document: Path) -> None:
    """`gatedrnn.something` in code font is a thing that exists."""
    for name in re.findall(r"`(gatedrnn(?:\.\w+)+)", document.read_text()):
        head, *rest = name.split(".")
        thing: object = importlib.import_module(head)
        for depth, part in enumerate(rest, start=1):
            if not hasattr(thing, part):
                importlib.import_module(".".join([head, *rest[:depth]]))
            thing = getattr(thing, part)


@named
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = "\n".join([*_blocks(document, "sh"), *re.findall(r"`([^`\n]+)`", document.read_text())])
    for target in re.findall(r"^make ([a-z-]+)", commands, re.MULTILINE):
        assert target in targets, f"{document.name}: make {target}"


@named
def test_commands_exist(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verbs and options of `gatedrnn …` commands are those of the command line."""
    commands = "\n".join([*_blocks(document, "sh"), *re.findall(r"`([^`\n]+)`", document.read_text())])
    commands = re.sub(r"^torchrun .*-m gatedrnn\.cli (?=[a-z])", "gatedrnn ", commands, flags=re.MULTILINE)
    for verb, arguments in re.findall(r"^gatedrnn ([a-z]+)(.*)$", commands, re.MULTILINE):
        # A file of the project stands for the task that it defines; `my_task.py` is an example of a name.
        below = re.findall(r"^ ([a-z_]+(?:/\w+)*(?:\.py)?)", arguments) if verb in ("train", "data") else []
        if below == ["my_task.py"]:
            below = []
        below = [str(ROOT / name) if name.endswith(".py") else name for name in below]
        with pytest.raises(SystemExit, match="0"):
            main([verb, *below, "--help"])
        shown = capsys.readouterr().out
        for option in re.findall(r"--[a-z-]+", arguments):
            assert option in shown, f"{document.name}: gatedrnn {verb} {option}"


def test_the_first_screen_is_made_from_the_records() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "first_screen.py"))
    readme = (ROOT / "README.md").read_text()
    assert made["with_blocks"](readme) == readme
    assert made["figure"]() == made["FIGURE"].read_bytes()


def test_the_readme_shows_the_gates_of_the_registry() -> None:
    assert gate_table() in (ROOT / "README.md").read_text()


def test_the_page_on_data_names_every_set_with_its_folder_files_and_licence() -> None:
    page = (ROOT / "docs" / "data.md").read_text()
    for data in SETS.values():
        (row,) = re.findall(rf"^\| `{data.name}` \|.*$", page, re.MULTILINE)
        assert row.endswith(f"| {data.licence} |")
        assert all(f"`{data.folders[0]}/{file.name}`" in row for file in data.files)
        assert data.tree is None or f"`{data.tree.folders[0]}`" in row
