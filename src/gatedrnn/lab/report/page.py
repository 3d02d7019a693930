"""A report as one self-contained HTML page: styles, script and data are embedded, and it needs no network.

The content security policy allows only the script with the given digest and no external resources, so that text from a
record could not run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib import resources

from gatedrnn.lab.report.document import OVERVIEW_TITLE, Chart, Document, Picture, Section, Table, chart_json
from gatedrnn.lab.report.folder import figure_file
from gatedrnn.lab.report.looks import ModelLook
from gatedrnn.lab.report.text import for_html
from gatedrnn.lab.report.verdicts import VERDICTS

_LONG, _LONG_HEADING = 40, 24  # characters; a longer cell may break its lines


def page(document: Document) -> str:
    """The whole report as index.html."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="icon" href="data:,">'
    yield f"<title>{for_html(document.title)}</title>"
    yield f"<style>{_asset('page.css')}</style>"
    yield "</head>"
    yield "<body>"
    yield f"<h1>{for_html(document.title)}</h1>"
    first = document.before_overview
    head = document.text if first else (document.counts, *document.text)
    yield from (f"<p>{for_html(paragraph)}</p>" for paragraph in head)
    yield from (f'<p class="notice" role="note">{for_html(notice)}</p>' for notice in document.notices)
    anchors = {label: section.anchor for section in document.sections for label in (section.label, *section.also)}
    if not first:
        yield from _table(document.overview, {}, anchors)
    if document.warnings:
        yield '<div class="warnings" role="note"><strong>Warnings</strong><ul>'
        yield from (f"<li>{for_html(warning)}</li>" for warning in document.warnings)
        yield "</ul></div>"
    for section in document.sections[:first]:
        yield from _section(section)
    if first:
        yield f'<section id="overview"><h2>{for_html(OVERVIEW_TITLE)}</h2>'
        yield f"<p>{for_html(document.counts)}</p>"
        yield from _table(document.overview, {}, anchors)
        yield "</section>"
    for section in document.sections[first:]:
        yield from _section(section)
    yield f'<script type="application/json" id="data">{_data(document)}</script>'
    yield f"<script>{script}</script>"
    yield "</body>"
    yield "</html>"


def _section(section: Section) -> Iterator[str]:
    label = f" <code>{for_html(section.label)}</code>" if section.label else ""
    yield f'<section id="{for_html(section.anchor)}">'
    yield f"<h2>{for_html(section.title)}{label} {_badge(section.verdict)}</h2>"
    yield from (f"<p>{for_html(paragraph)}</p>" for paragraph in section.text)
    looks = {series.name: series.look for chart in section.charts for series in chart.series}
    for table in section.verdicts:
        yield from _table(table, looks, {})
    for chart in section.charts:
        yield from _figure(chart)
    for picture in section.pictures:
        yield from _picture(picture)
    for table in section.tables:
        yield from _table(table, looks, {})
    yield "</section>"


def _figure(chart: Chart) -> Iterator[str]:
    yield f'<figure class="chart" data-chart="{for_html(chart.stem)}">'
    yield f"<figcaption>{for_html(chart.title)} <small>{for_html(chart.note)}</small></figcaption>"
    yield '<div class="controls"></div><div class="plot"></div><div class="legend"></div>'
    picture = for_html(figure_file(chart.stem, "png"))
    yield f"<noscript><p>The interactive curves need JavaScript; as an image: {picture}</p></noscript>"
    yield "</figure>"


def _picture(picture: Picture) -> Iterator[str]:
    """Embedded, so that the page can be moved without its figures."""
    encoded = base64.b64encode(picture.png).decode()
    yield '<figure class="picture">'
    yield f'<img alt="{for_html(picture.title)}" src="data:image/png;base64,{encoded}">'
    yield "</figure>"


def _table(table: Table, looks: Mapping[str, ModelLook], anchors: Mapping[str, str]) -> Iterator[str]:
    # Focusable, so that the box can be scrolled with the keyboard.
    yield f'<p class="caption">{for_html(table.caption)}</p>'
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{for_html(table.caption)}"><table>'
    yield "<thead><tr>" + "".join(_heading(cell) for cell in table.header) + "</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        cells = []
        for i, cell in enumerate(row):
            inner = _badge(cell) if cell in VERDICTS else for_html(cell)
            if cell in anchors:
                inner = f'<a href="#{for_html(anchors[cell])}">{inner}</a>'
            if i == table.models and cell in looks:
                inner = f'<i class="dot" style="--light:{looks[cell].light};--dark:{looks[cell].dark}"></i>{inner}'
            cells.append(f'<td class="long">{inner}</td>' if len(cell) > _LONG else f"<td>{inner}</td>")
        yield "<tr>" + "".join(cells) + "</tr>"
    yield "</tbody></table></div>"


def _heading(cell: str) -> str:
    long = ' class="long"' if len(cell) > _LONG_HEADING else ""
    return f'<th scope="col"{long}>{for_html(cell)}</th>'


def _badge(verdict: str) -> str:
    if not verdict:
        return ""
    return f'<span class="badge {for_html(verdict.partition(" ")[0])}">{for_html(verdict)}</span>'


def _data(document: Document) -> str:
    charts = {chart.stem: chart_json(chart) for chart in document.charts()}
    dumped = json.dumps({"charts": charts}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Only "<" can end a script element; JSON allows the escaped form.
    return dumped.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return resources.files("gatedrnn.lab.report").joinpath(name).read_text(encoding="utf-8")
