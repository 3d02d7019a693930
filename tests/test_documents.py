"""Every document with a command or a name in it is executed or checked."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import gatedrnn
from gatedrnn.cli import main, sweep, train
from gatedrnn.cli.failure import Failure
from gatedrnn.cli.list import gate_table
from gatedrnn.cli.verbs import parsed
from gatedrnn.lab.data import SETS
from gatedrnn.lab.experiments import CLAIMS, EXPERIMENTS
from gatedrnn.lab.report.figures import images

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    path
    for folder in (".", "docs", "docs/reproduction", "benchmarks", "results")
    for path in (ROOT / folder).glob("*.md")
)
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
    for target, fragment in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", document.read_text()):
        if not target.startswith("http"):
            place = document.parent / target if target else document
            assert place.exists(), f"{document.name}: {target}"
            assert not fragment or fragment in _fragments(place), f"{document.name}: {target}#{fragment}"


def _fragments(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line) for line in re.findall(r"^#+ +(.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


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
def test_every_block_is_of_a_kind_that_is_checked(document: Path) -> None:
    """python is run, the commands of sh are checked, and text (formulas, pictures) holds no command. pycon is for the
    examples of docstrings, which are run as such."""
    fences = re.findall(r"^([ \t]*)```(.*)$", document.read_text(), re.MULTILINE)
    known = ("python", "sh", "text") + ("pycon",) * (document.name == "reference.md")
    assert all(kind in known for _, kind in fences[::2]), f"{document.name}: {fences[::2]}"
    assert all(fence == ("", "") for fence in fences[1::2]) and all(indent == "" for indent, _ in fences)
    for block in _blocks(document, "text"):
        assert not re.search(r"^\W*(gatedrnn|make|pip|python|torchrun) ", block, re.MULTILINE), (
            f"{document.name}: {block}"
        )


def _commands(document: Path) -> Iterator[list[str]]:
    """The commands of the sh blocks, as the words that a shell makes of them."""
    for block in _blocks(document, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words:
                end = words.index("&&") if "&&" in words else len(words)
                yield words[:end]
                words = words[end + 1 :]


class _Started(Exception):  # noqa: N818 - not an error: the options were found to be right
    pass


@pytest.fixture
def _no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that train check all their options and stop where the work would begin."""

    def start(*_: object) -> NoReturn:
        raise _Started

    monkeypatch.setattr(train, "train", start)
    monkeypatch.setattr(sweep, "Pool", start)
    monkeypatch.setattr("gatedrnn.lab.experiments.launchers.local.cores_here", lambda: 2)  # what the documents assume
    monkeypatch.chdir(ROOT)


def _check(words: list[str], made: set[Path]) -> None:
    """Raises AssertionError or Failure for a command that a reader could not run; adds the folders that it makes."""
    program, *arguments = itertools.dropwhile(lambda word: re.fullmatch(r"[A-Z_]+=\S*", word), words)  # settings
    if program == "torchrun":
        program, arguments = "gatedrnn", arguments[arguments.index("gatedrnn.cli") + 1 :]
    if program == "gatedrnn":
        _check_verb(parsed(arguments), made)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert arguments and set(arguments) <= set(targets), f"make {arguments}"
    elif program == "pip" and arguments[:2] == ["download", "--no-deps"]:  # data inside another package, of one version
        assert re.fullmatch(r"[\w-]+==[\d.]+", " ".join(arguments[2:])), arguments
    elif program == "pip":
        section = (
            (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]\n")[2].partition("\n\n")[0]
        )
        extras = re.findall(r"^(\w+) = ", section, re.MULTILINE)
        wanted = re.fullmatch(r"(?:\.|gatedrnn)(?:\[(.*)\])?", arguments[1])
        assert arguments[0] == "install" and wanted is not None, arguments
        assert set((wanted[1] or "lab").split(",")) <= set(extras), arguments
    elif program == "python" and arguments[0] == "-m":
        importlib.import_module(arguments[1])
    elif program == "python":
        assert (ROOT / arguments[0]).is_file(), arguments
    else:
        assert program in ("git", "cd", ".", "ray"), f"{program}: not a command of this project"


def _check_verb(verb: Any, made: set[Path]) -> None:
    for option in ("runs", "checkpoint", "against"):
        folder = getattr(verb, option, None)
        assert folder is None or (ROOT / folder).exists() or made & {folder, *folder.parents}, f"nothing makes {folder}"
    if isinstance(verb, sweep.Sweep) or isinstance(getattr(verb, "job", None), train.Job):
        with pytest.raises(_Started):
            verb.run()
    made |= {getattr(getattr(verb, "job", verb), "out", None) or Path("nothing")}


@named
@pytest.mark.usefixtures("_no_work")
def test_commands_can_be_run_in_order(document: Path) -> None:
    made: set[Path] = set()
    for words in _commands(document):
        try:
            _check(words, made)
        except Failure as wrong:
            pytest.fail(f"{document.name}: {shlex.join(words)}: {wrong}")


@pytest.mark.usefixtures("_no_work")
@pytest.mark.parametrize(
    "command",
    [
        "gatedrnn train adding --lenght 5 --out runs",
        "gatedrnn train adding --length 5.5 --out runs",
        "gatedrnn train adding --forget-gate fsat --out runs",
        "gatedrnn train adding",
        "gatedrnn train examples/no_such_file.py --out runs",
        "gatedrnn sweep fig:no_such_label --out runs",
        "gatedrnn sweep fig:adding_mse --budget huge --out runs",
        "gatedrnn evaluate runs/that/nothing/makes",
        "gatedrnn report runs --out report",
        "gatedrnn nonsense",
        "torchrun -m gatedrnn.cli train no_such_task --out runs",
        "make nonsense",
        'pip install ".[nonsense]"',
        "pip install something_else",
        "python no_such_file.py",
        "nonsense",
    ],
)
def test_a_wrong_command_is_found(command: str) -> None:
    with pytest.raises((AssertionError, Failure, pytest.fail.Exception)):
        _check(shlex.split(command), set())


@named
def test_make_targets_in_the_text_exist(document: Path) -> None:
    for target in re.findall(r"`make ([a-z-]+)`", document.read_text()):
        _check(["make", target], set())


@named
def test_commands_in_the_text_exist(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verbs and options of `gatedrnn …` are those of the command line; a sentence may leave out the rest."""
    for verb, arguments in re.findall(r"`gatedrnn ([a-z]+)([^`\n]*)`", document.read_text()):
        # A file of the project stands for the task that it defines; `my_task.py` is an example of a name.
        below = re.findall(r"^ ([a-z_0-9]+(?:/\w+)*(?:\.py)?)", arguments) if verb in ("train", "data") else []
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


def test_the_reference_is_made_from_the_docstrings() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    assert made["page"]() == made["PAGE"].read_text()
    for name in set(gatedrnn.__all__) - {"__version__", "export", "gates", "inits"}:
        assert f"### gatedrnn.{name}\n" in made["page"]()


def test_the_reproduction_is_made_from_the_records() -> None:
    """`make report` changes nothing: the report, the numbers of the pages, and what each figure shows."""
    made = runpy.run_path(str(ROOT / "docs" / "reproduction.py"))
    reproduction = made["Reproduction"]()
    assert reproduction.report() == made["REPORT"].read_text()
    assert {"README.md", "adding.md", "copy.md", "images.md", "theory.md"} <= set(made["pages"]())
    for name in made["pages"]():
        assert reproduction.page(name) == (made["PAGES"] / name).read_text(), name
    figures = {path.stem: path.stat().st_size for path in made["FIGURES"].iterdir()}
    digests = json.loads((made["FIGURES"].parent / made["DIGESTS"]).read_text())
    assert digests == reproduction.digests() and digests.keys() == figures.keys()
    assert max(figures.values()) < 150_000
    # One is drawn again: the others would show the same if their digests are the same.
    first = reproduction.document.charts()[0]
    assert made["small_image"](first) == (made["FIGURES"] / f"{first.stem}.png").read_bytes()
    for chart in reproduction.document.charts():
        if len(chart.clocks) > 1:  # the page draws a panel for each, the documents only the first
            assert images(chart)["png"]
    ledger = reproduction.document.overview.rows
    assert {row[0] for row in ledger} == {*EXPERIMENTS, *(claim.label for claim in CLAIMS)}
    for row in ledger:
        assert (made["PAGES"] / made["_page_of"](row[0])).exists(), row[0]


def test_the_readme_shows_the_gates_of_the_registry() -> None:
    assert gate_table() in (ROOT / "README.md").read_text()


def test_the_page_on_data_names_every_set_with_its_folder_files_and_licence() -> None:
    page = (ROOT / "docs" / "data.md").read_text()
    for data in SETS.values():
        (row,) = re.findall(rf"^\| `{data.name}` \|.*$", page, re.MULTILINE)
        assert row.endswith(f"| {data.licence} |")
        assert all(f"`{data.folders[0]}/{file.name}`" in row for file in data.files)
        assert data.tree is None or f"`{data.tree.folders[0]}`" in row
