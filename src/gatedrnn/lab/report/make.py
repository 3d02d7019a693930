"""The function that makes a report of a folder of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gatedrnn.lab.records import OPTIONS_FILE
from gatedrnn.lab.report import folder, update_times
from gatedrnn.lab.report.document import Document
from gatedrnn.lab.report.figures import images
from gatedrnn.lab.report.items import Item, measures_of, own_items, paper_items
from gatedrnn.lab.report.markdown import markdown
from gatedrnn.lab.report.page import page
from gatedrnn.lab.report.runs import load
from gatedrnn.lab.report.sections import document
from gatedrnn.lab.report.theory import find

#: progress(done, total, what): called before each piece of work, and once at the end with done = total.
Progress = Callable[[int, int, str], None]


def make_report(
    runs: Path,
    out: Path,
    progress: Progress | None = None,
    items: Sequence[Item] | None = None,
    theory: Path | None = None,
) -> list[str]:
    """Report the runs at and below a folder into the folder ``out``; return the warnings.

    Written: ``index.html``, ``report.md``, ``figures/*.png`` and ``.svg``, and ``report.json``, which lists them.
    Everything is computed before the first file is written; the same records give the same bytes. ``items`` defaults to
    the paper's and the additional ones. ``theory`` is an output folder of ``gatedrnn theory``; the default is one in,
    below or next to the folder of the runs.

    Raises ValueError if there is nothing to report, OSError if ``out`` cannot be written to or contains other files.
    """
    folder.check(out)
    report = read_report(runs, items, theory)
    charts = report.charts()
    contents = {folder.figure_file(picture.stem, "png"): picture.png for picture in report.pictures()}
    step = progress or (lambda done, total, what: None)
    total = len(charts) + 1
    for done, chart in enumerate(charts):
        step(done, total, chart.title)
        for kind, content in images(chart).items():
            contents[folder.figure_file(chart.stem, kind)] = content
    step(len(charts), total, f"writing to {out}")
    # Last: these files refer to the figures.
    contents[folder.MARKDOWN] = markdown(report).encode()
    contents[folder.PAGE] = page(report).encode()
    folder.write_report(out, contents)
    step(total, total, "done")
    return report.warnings


def read_report(runs: Path, items: Sequence[Item] | None = None, theory: Path | None = None) -> Document:
    """What :func:`make_report` writes, before it becomes files. Raises ValueError if there is nothing to report."""
    if not runs.is_dir():
        raise ValueError(f"no runs to report: {runs} is not a folder")
    items = [*paper_items(), *own_items()] if items is None else items
    found, warnings = load(runs, measures_of(items))
    if not found and warnings:
        raise ValueError(f"no readable run in {runs}: {warnings[0]}")
    if not found:
        raise ValueError(f"no runs to report in {runs}: no folder there contains an {OPTIONS_FILE}")
    times = update_times.find(runs, items, warnings)
    return document(found, warnings, items, find(runs, theory, warnings), times)
