"""The folder of a report: refused if it contains other files; its files are written atomically.

``report.json`` lists the files of a report. It is written first, so that the folder of an interrupted report is
recognised and can be written again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gatedrnn.files import check_folder, write
from gatedrnn.lab.records import write_json

MANIFEST = "report.json"
PAGE = "index.html"
MARKDOWN = "report.md"
_KIND = "gatedrnn report"
# Names that a report may write and, if an earlier report listed them, remove. None leads out of the folder.
_NAME = re.compile(r"(?:figures/)?\w+\.(?:html|json|md|png|svg)", re.ASCII)


def figure_file(stem: str, kind: str) -> str:
    """The name of a figure's file, below the folder."""
    return f"figures/{stem}.{kind}"


def check(out: Path) -> None:
    """Raise OSError if a report cannot be written into this folder, FileExistsError if it contains other files."""
    check_folder(out)
    if not out.is_dir():
        return
    ours = _listed(out)
    for path in sorted(out.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(out).as_posix()
        # A report writes no symbolic links: one with the name of a report's file could point anywhere.
        if path.is_symlink() or (name not in ours and not _is_remainder(path, ours, out)):
            raise FileExistsError(f"{out} contains {name}, which is not part of a report; choose another folder")


def write_report(out: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files by their names below ``out``, and remove those of an earlier report that are no longer needed."""
    for name in contents:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a file of a report")
    before = _listed(out)
    out.mkdir(parents=True, exist_ok=True)
    _list(out, {*before, *contents})
    for name, content in contents.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write(out / name, content)
    for name in sorted(before - {MANIFEST, *contents}):
        (out / name).unlink(missing_ok=True)
    _list(out, contents)


def _list(out: Path, names: Iterable[str]) -> None:
    write_json(out / MANIFEST, {"schema": 1, "kind": _KIND, "files": sorted({MANIFEST, *names})})


def _listed(out: Path) -> set[str]:
    """The names in the manifest, including its own, that a report can have written."""
    try:
        manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        if manifest["kind"] != _KIND:
            return set()
        names = {str(name) for name in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in names if _NAME.fullmatch(name)}


def _is_remainder(path: Path, ours: set[str], out: Path) -> bool:
    """A temporary file that an interrupted report left: .NAME.PROCESS.tmp"""
    if not path.name.startswith(".") or not path.name.endswith(".tmp"):
        return False
    name = path.name[1:].removesuffix(".tmp").rpartition(".")[0]
    return (path.parent / name).relative_to(out).as_posix() in {MANIFEST, *ours}
