"""One call that makes a report of a folder of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gatedrnn.lab.report import folder
from gatedrnn.lab.report.figures import images
from gatedrnn.lab.report.items import Item, paper_items
from gatedrnn.lab.report.markdown import markdown
from gatedrnn.lab.report.page import page
from gatedrnn.lab.report.runs import load
from gatedrnn.lab.report.sections import document

#: progress(done, total, what): called before each piece of work, and once at the end with done = total.
Progress = Callable[[int, int, str], None]


def make_report(
    runs: Path, out: Path, progress: Progress | None = None, items: Sequence[Item] | None = None
) -> list[str]:
    """Report the runs at and below a folder into the folder ``out``; return the warnings.

    Written: ``index.html``, ``report.md``, ``figures/*.png`` and ``.svg``, and ``report.json``, which lists them.
    Nothing is written before all is computed; the same records give the same bytes. ``items`` are the paper's unless
    told otherwise.

    Raises ValueError if there is nothing to report, OSError if ``out`` cannot be written to or holds something else.
    """
    folder.check(out)
    if not runs.is_dir():
        raise ValueError(f"no runs to report: {runs} is not a folder")
    found, warnings = load(runs)
    if not found and warnings:
        raise ValueError(f"no readable run in {runs}: {warnings[0]}")
    if not found:
        raise ValueError(f"no runs to report in {runs}: no folder there holds an options.json")
    report = document(found, warnings, paper_items() if items is None else items)
    charts = report.charts()
    contents = {}
    for done, chart in enumerate(charts):
        if progress is not None:
            progress(done, len(charts), chart.title)
        for kind, content in images(chart).items():
            contents[f"figures/{chart.stem}.{kind}"] = content
    # Last, so that what refers to the figures appears after them.
    contents["report.md"] = markdown(report).encode()
    contents["index.html"] = page(report).encode()
    folder.write_report(out, contents)
    if progress is not None:
        progress(len(charts), len(charts), "done")
    return warnings
