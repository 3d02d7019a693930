"""Holds the imports of the package to the table in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gatedrnn"


def _table() -> dict[str, tuple[set[str], set[str]]]:
    rows = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and re.fullmatch(r"[a-z_.]+", cells[0]) and cells[0] != "module":
            rows[cells[0]] = tuple({name.strip() for name in cell.split(",") if name.strip()} for cell in cells[1:])
    return rows  # type: ignore[return-value]


ALLOWED = _table()
FILES = sorted(PACKAGE.rglob("*.py"))


def _module(path: Path) -> str:
    first, *rest = path.relative_to(PACKAGE).parts
    return "gatedrnn" if first == "__init__.py" else _owner([part.removesuffix(".py") for part in (first, *rest)])


def _owner(parts: list[str]) -> str:
    """The row of the table: the first name, or for the laboratory, whose packages have a row each, the first two."""
    return ".".join(parts[:2]) if parts[0] == "lab" and parts[1:] and parts[1] != "__init__" else parts[0]


def _imports(path: Path) -> Iterator[str]:
    """Dotted names of everything imported; `from gatedrnn import gates` counts as gatedrnn.gates, lab.x likewise."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module in ("gatedrnn", "gatedrnn.lab"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module or ""


def _violations(path: Path, module: str) -> list[str]:
    own, others = ALLOWED[module]
    found = []
    for name in _imports(path):
        top, *rest = name.split(".")
        if top == "gatedrnn":
            version = rest == ["__version__"] and module.startswith(("cli", "lab"))
            if rest and _owner(rest) not in own | {module} and not version:
                found.append(name)
        elif top != "torch" and top not in others and top not in sys.stdlib_module_names:
            found.append(name)
    return found


def test_the_table_names_every_module() -> None:
    assert {_module(path) for path in FILES} == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_flow(path: Path) -> None:
    assert _violations(path, _module(path)) == []


def test_a_wrong_import_is_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import numpy\nfrom gatedrnn import layers\nfrom gatedrnn.engines.reference import ReferenceEngine\n"
    )
    assert _violations(wrong, "cells") == ["numpy", "gatedrnn.layers", "gatedrnn.engines.reference"]


def test_a_wrong_import_inside_the_laboratory_is_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from gatedrnn import lab, layers\nfrom gatedrnn.lab import tasks\nfrom gatedrnn.lab.tasks.base import Task\n"
        "import gatedrnn.lab.models.options\nfrom gatedrnn.lab.training import Run\n"
    )
    assert _violations(wrong, "lab.models") == [
        "gatedrnn.lab",
        "gatedrnn.lab.tasks",
        "gatedrnn.lab.tasks.base",
        "gatedrnn.lab.training",
    ]


def test_the_library_never_imports_what_needs_the_extra() -> None:
    import subprocess

    code = "import gatedrnn, sys; print([m for m in sys.modules if m.startswith(('gatedrnn.theory', 'gatedrnn.lab', 'gatedrnn.cli'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
