"""A report as Markdown, with links to its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gatedrnn.lab.report.document import OVERVIEW_TITLE, Chart, Document, Picture, Section, Table
from gatedrnn.lab.report.folder import figure_file
from gatedrnn.lab.report.text import for_markdown

#: The files of a chart or picture, relative to the Markdown file: the image that is shown, then other formats.
Places = Callable[[Chart | Picture], Sequence[str]]


def beside(shown: Chart | Picture) -> list[str]:
    """In the folder of figures, as in a report."""
    kinds = ("png", "svg") if isinstance(shown, Chart) else ("png",)
    return [figure_file(shown.stem, kind) for kind in kinds]


def markdown(document: Document, places: Places = beside) -> str:
    """The whole report as report.md."""
    return "\n".join(_lines(document, places)) + "\n"


def table_lines(table: Table) -> list[str]:
    """One table with its caption above."""
    return list(_table(table))


def _lines(document: Document, places: Places) -> Iterator[str]:
    first = document.before_overview
    yield f"# {for_markdown(document.title)}"
    yield ""
    for paragraph in document.text if first else (document.counts, *document.text):
        yield from (for_markdown(paragraph), "")
    for notice in document.notices:
        yield from (f"**{for_markdown(notice)}**", "")
    if not first:
        yield from _table(document.overview)
    if document.warnings:
        yield from ("**Warnings**", "")
        yield from (f"* {for_markdown(warning)}" for warning in document.warnings)
        yield ""
    for section in document.sections[:first]:
        yield from _section(section, places)
    if first:
        yield from (f"## {OVERVIEW_TITLE}", "", for_markdown(document.counts), "")
        yield from _table(document.overview)
    for section in document.sections[first:]:
        yield from _section(section, places)


def _section(section: Section, places: Places) -> Iterator[str]:
    label = f" ({for_markdown(section.label)})" if section.label else ""
    yield from (f"## {for_markdown(section.title)}{label}", "")
    if section.verdict:
        yield from (f"Verdict: **{for_markdown(section.verdict)}**", "")
    for paragraph in section.text:
        yield from (for_markdown(paragraph), "")
    for table in section.verdicts:
        yield from _table(table)
    for chart in section.charts:
        yield from (_image(chart, places), "", _note(chart, places), "")
    for picture in section.pictures:
        yield from (_image(picture, places), "")
    for table in section.tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield from (for_markdown(table.caption), "")
    for row in (table.header, tuple("---" for _ in table.header), *table.rows):
        yield "| " + " | ".join(cell if cell == "---" else for_markdown(cell) for cell in row) + " |"
    yield ""


def _note(chart: Chart, places: Places) -> str:
    others = places(chart)[1:]
    links = ", ".join(f"[{place.rpartition('.')[2].upper()}]({place})" for place in others)
    return for_markdown(chart.note) + (f" Also as {links}." if links else "")


def _image(shown: Chart | Picture, places: Places) -> str:
    return f"![{for_markdown(shown.title)}]({places(shown)[0]})"
