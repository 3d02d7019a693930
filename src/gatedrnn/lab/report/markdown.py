"""A report as Markdown, with links to the figures beside it."""

from __future__ import annotations

from collections.abc import Iterator

from gatedrnn.lab.report.document import Chart, Document, Picture, Section, Table
from gatedrnn.lab.report.folder import figure_file
from gatedrnn.lab.report.text import for_markdown


def markdown(document: Document) -> str:
    """The whole report as report.md."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {for_markdown(document.title)}"
    yield ""
    for paragraph in document.text:
        yield from (for_markdown(paragraph), "")
    for notice in document.notices:
        yield from (f"**{for_markdown(notice)}**", "")
    if document.warnings:
        yield from ("**Warnings**", "")
        yield from (f"* {for_markdown(warning)}" for warning in document.warnings)
        yield ""
    yield from _table(document.overview)
    for section in document.sections:
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    label = f" ({for_markdown(section.label)})" if section.label else ""
    yield from (f"## {for_markdown(section.title)}{label}", "")
    if section.verdict:
        yield from (f"Verdict: **{for_markdown(section.verdict)}**", "")
    for paragraph in section.text:
        yield from (for_markdown(paragraph), "")
    for table in section.verdicts:
        yield from _table(table)
    for chart in section.charts:
        yield from _chart(chart)
    for picture in section.pictures:
        yield from (_image(picture), "")
    for table in section.tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield from (for_markdown(table.caption), "")
    for row in (table.header, tuple("---" for _ in table.header), *table.rows):
        yield "| " + " | ".join(cell if cell == "---" else for_markdown(cell) for cell in row) + " |"
    yield ""


def _chart(chart: Chart) -> Iterator[str]:
    yield from (_image(chart), "")
    yield f"{for_markdown(chart.note)} As [SVG]({figure_file(chart.stem, 'svg')})."
    yield ""


def _image(shown: Chart | Picture) -> str:
    return f"![{for_markdown(shown.title)}]({figure_file(shown.stem, 'png')})"
