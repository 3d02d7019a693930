"""A whole report from records on disk: what it says, and that nothing from a record gets loose."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gatedrnn.lab.experiments import EXPERIMENTS, PaperValue
from gatedrnn.lab.report import make, make_report
from gatedrnn.lab.report.items import Item, paper_items
from tests.lab.report.records import declare, item, mse, write_run, write_sweep

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>|`$x_$\x00\ud800"
THEORY = Item("fig:demo", "Toy problem", (), "", None, {}, theory=True)
NOT_RUN = Item(
    "tab:x", "Speech", ("speech",), "accuracy", None, {},
    columns={"speech": "%"}, values={"fast": {"speech": PaperValue(92.3)}, "sigmoid": {"speech": PaperValue(21.5, 0.25, True)}},
)  # fmt: skip


def _paper(values: dict[str, float]) -> dict[str, dict[str, PaperValue]]:
    return {model: {"adding": PaperValue(value)} for model, value in values.items()}


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what else a report says: a picture takes half a second."""
    monkeypatch.setattr(make, "images", lambda chart: {"png": b"", "svg": b""})


class Reader(HTMLParser):
    """Collects the tags, the attributes and the text of the tables of a page, and sees that every tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self.open: list[str] = []
        self.data = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.cells[-1] += data
        if self.open and self.open[-1] == "script" and data.startswith("{"):
            self.data += data


def report(tmp_path: Path, items: list[Item]) -> tuple[str, str, dict[str, Any]]:
    """The Markdown, the page, and the data in it."""
    make_report(tmp_path / "runs", tmp_path / "out", items=items)
    page = (tmp_path / "out" / "index.html").read_text()
    data: dict[str, Any] = json.loads(Reader(page).data)
    return (tmp_path / "out" / "report.md").read_text(), page, data["charts"]


@pytest.mark.usefixtures("no_pictures")
def test_the_papers_setting(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("softsign", "sigmoid", "fast"))
    values = {"fast": mse("fast", 1, 30), "sigmoid": 0.5, "NRU": 0.1}
    better = item(label="fig:x", values=_paper(values), columns={"adding": "mse"}, expected=("fast is first",))
    markdown, page, charts = report(tmp_path, [better, THEORY, NOT_RUN])
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert "| fig:x | differs | paper 9 of 9 | Adding, error |" in rows
    assert "| fig:demo | not run | none needed | Toy problem |" in rows
    assert "| tab:x | not run | — | Speech |" in rows
    (fast,) = [row for row in rows if row.startswith("| fast | 0.0001")]
    assert re.fullmatch(r"\| fast \| 0\.0001\d+ ± [\d.]+e−5 \(n = 3\) \| 0\.000\d+ \| agrees \|", fast)
    assert any(row.startswith("| sigmoid |") and row.endswith("| 0.5 | differs |") for row in rows)
    assert "| NRU | — | 0.1 | not run |" in rows
    assert any("800 ± 50 (95 %: 675.8 … 924.2)" in row for row in rows)
    assert "| sigmoid | 3 of 3 | 0 | 0 | 0 | 0.25 |" in rows
    assert "gatedrnn theory --out DIR" in markdown
    assert "Not run. To run it: gatedrnn sweep tab:x --out DIR" in markdown
    assert "| fast | 92.30 |" in rows and "| sigmoid | 21.50 ± 0.25 (diverged) |" in rows
    assert "| fast is first | not checked | — | — | partial |" in rows

    cells = Reader(page).cells
    assert "800 ± 50 (95 %: 675.8 … 924.2)" in cells
    assert "differs" in cells
    chart = charts["fig_x_paper"]
    assert [series["name"] for series in chart["series"]] == ["softsign", "sigmoid", "fast"]
    drawn = chart["series"][2]
    assert drawn["updates"]["x"] == [50 * i for i in range(31)]
    expected = [sum(mse("fast", seed, i) for seed in range(3)) / 3 for i in range(31)]
    assert drawn["updates"]["mean"] == pytest.approx(expected, rel=1e-5)
    assert drawn["runs"][1]["value"] == pytest.approx([mse("fast", 1, i) for i in range(31)], rel=1e-5)
    assert drawn["runs"][1]["seconds"] == list(range(31))
    assert (drawn["light"], chart["threshold"], chart["log_y"]) == ("#C1121F", 0.02, True)


@pytest.mark.usefixtures("no_pictures")
def test_a_desk_result_is_never_the_papers(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("softsign", "sigmoid", "fast"))
    said = ("softsign fails", "fast is first among the gates")
    markdown, page, _ = report(
        tmp_path, [item("desk", values=_paper({"sigmoid": 0.5}), columns={"adding": "mse"}, expected=said)]
    )
    assert "| fig:adding\\_mse | partial |" in markdown
    compared = [row for row in markdown.splitlines() if re.match(r"\| (sigmoid|fast is first|softsign fails)", row)]
    assert any("| 0.5 | partial |" in row for row in compared)
    assert any("| holds |" in row and row.endswith("| partial |") for row in compared)
    assert "agrees |" not in markdown and "differs |" not in markdown
    assert "desk budget, not the paper's setting" in page.replace("&#x27;", "'")
    assert "paper's setting" not in markdown.replace("not the paper's setting", "").partition("## How to read")[0]


@pytest.mark.usefixtures("no_pictures")
def test_smoke_runs_do_not_count(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("fast",))
    markdown, page, charts = report(tmp_path, [item("smoke", ("fast",))])
    assert "| fig:adding\\_mse | not run |" in markdown
    assert charts == {}
    assert "Other runs" not in markdown
    said = "All runs found are smoke runs: they only check that everything works, and do not count for any table or figure."
    assert said in page.partition("<table>")[0]
    assert f"**{said}" in markdown.partition("| label |")[0]
    seen: list[tuple[int, int]] = []
    make_report(
        tmp_path / "runs",
        tmp_path / "out",
        lambda done, total, what: seen.append((done, total)),
        [item("smoke", ("fast",))],
    )
    assert seen == [(0, 1), (1, 1)]


@pytest.mark.usefixtures("no_pictures")
def test_some_smoke_runs_are_told_apart(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("fast",))
    write_run(tmp_path / "runs" / "other", "sigmoid", 0)
    markdown, _, _ = report(tmp_path, [item("smoke", ("fast",))])
    assert "3 of 4 runs are smoke runs, which do not count for any table or figure." in markdown
    markdown, _, _ = report(tmp_path, [item("desk", ("fast",))])
    assert "smoke" not in markdown.partition("## How to read")[0]


@pytest.mark.usefixtures("no_pictures")
def test_runs_with_other_options_than_declared_today_are_named(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / "runs" / f"{seed}", "fast", seed, key="older" if seed == 1 else None)
        declare(tmp_path / "runs" / f"{seed}", "adding", "desk", "fast")
    markdown, _, charts = report(tmp_path, [item("desk", ("fast",))])
    assert "3 of 3 found" in markdown and len(charts["fig_adding_mse_desk"]["series"][0]["runs"]) == 3
    assert "* 1: options differ from those currently declared for adding at desk budget\n" in markdown
    assert "* 0: " not in markdown


@pytest.mark.usefixtures("no_pictures")
def test_a_diverged_run_is_marked_where_it_ended(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", "fast", 0, evaluations=6, outcome="diverged")
    path = tmp_path / "runs" / "a" / "metrics.jsonl"
    lines = path.read_text().splitlines()
    lines[-1] = re.sub(r'"mse": [\d.e-]+', '"mse": null', lines[-1])
    path.write_text("\n".join(lines) + "\n")
    write_run(tmp_path / "runs" / "b", "fast", 1, evaluations=9)
    markdown, _, charts = report(tmp_path, [])
    series = charts["other_1_metric"]["series"][0]
    assert [run["diverged_at"] for run in series["runs"]] == [4, None]  # the last evaluation with a value
    assert series["legend"] == "2 seeds, 1 diverged"
    assert "×: last value of a run that diverged." in markdown


@pytest.mark.usefixtures("no_pictures")
def test_missing_and_stopped_runs_make_it_partial(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("softsign", "sigmoid", "refine"))
    write_run(tmp_path / "runs" / "f0", "fast", 0)
    write_run(tmp_path / "runs" / "f1", "fast", 1, evaluations=9, outcome="budget_spent")
    write_run(tmp_path / "runs" / "f2", "fast", 2, evaluations=9, outcome="diverged")
    declared = item(models=("softsign", "sigmoid", "refine", "fast", "NRU"))
    markdown, _, _ = report(tmp_path, [declared])
    assert "| fig:adding\\_mse | partial |" in markdown
    assert "Runs at paper budget: 12 of 15 found, 11 of them complete." in markdown
    assert "finished (seed 0); time budget spent at update 400 (seed 1); diverged at update 407 (seed 2)" in markdown
    assert "1 of 3 reached; median > 750 (≥ 75 %: 400 … ∞)" in html.unescape(markdown)


@pytest.mark.usefixtures("no_pictures")
def test_views_of_the_same_runs(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("sigmoid", "fast", "NRU"), seeds=2)
    several = {"fig:a": "updates", "fig:b": "seconds", "fig:c": "loss", "fig:d": "time_scales"}
    items = [
        item(models=("sigmoid", "fast", "NRU"), seeds=2, label=label, view=view) for label, view in several.items()
    ]
    _, page, charts = report(tmp_path, items)
    expected = {
        "fig_a_paper",
        "fig_a_paper_time_scales",
        "fig_b_paper",
        "fig_c_paper",
        "fig_d_paper",
        "fig_d_paper_time_scales",
    }
    assert set(charts) == expected
    assert charts["fig_b_paper"]["against"] == "seconds"
    assert charts["fig_b_paper"]["clocks"] == [
        "cpu engine, 2 threads, test processor",
        "reference engine, 2 threads, test processor",
    ]
    nru = charts["fig_b_paper"]["series"][2]
    assert list(nru["seconds"]) == ["1"] and {run["clock"] for run in nru["runs"]} == {1}
    scales = charts["fig_d_paper_time_scales"]
    assert [series["name"] for series in scales["series"]] == ["sigmoid", "fast"]  # the NRU has none
    assert scales["series"][1]["updates"]["mean"][-1] == pytest.approx(3 * 1.3**30, rel=1e-5)
    assert scales["series"][1]["updates"]["std"][-1] == pytest.approx(3 * 1.3**30 / 4, rel=1e-5)
    assert scales["clocks"] == []
    assert {path.stem for path in (tmp_path / "out" / "figures").glob("*.png")} == expected
    assert {path.stem for path in (tmp_path / "out" / "figures").glob("*.svg")} == expected
    assert page.count("<figure") == len(expected)


@pytest.mark.usefixtures("no_pictures")
def test_other_runs_have_their_own_section(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("sigmoid", "fast"), seeds=2)
    write_run(tmp_path / "runs" / "slow", "fast", 0, outcome=None, training={"lr": 0.01, "target": 0.1}, key="slow")
    markdown, page, charts = report(tmp_path, [item("paper", ("NRU",))])
    # Nothing of the paper was run: its ledger comes after the runs that were made.
    assert markdown.startswith("# gatedrnn: runs\n\n5 runs ")
    places = [
        markdown.index(part) for part in ("## Other runs", "## Tables and figures of the paper", "## Adding, err")
    ]
    assert places == sorted(places) and markdown.index("Summary: ") > places[1]
    assert page.index("Other runs") < page.index('<section id="overview">') < page.index("Summary: ")
    assert "## Other runs: adding, length=300" in markdown
    assert "unfinished at update 1500" in markdown
    assert "Threshold: mse 0.1." in markdown
    stem = "other_1"
    assert set(charts) == {f"{stem}_metric", f"{stem}_loss", f"{stem}_time_scales"}
    assert [series["name"] for series in charts[f"{stem}_metric"]["series"]] == [
        "sigmoid",
        "fast, lr=0.001, target=null",
        "fast, lr=0.01, target=0.1",
    ]


def test_nothing_from_a_record_gets_loose(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "</td><script>alert(1)<"
    write_run(folder.parent / "plain", "fast", 0)
    write_run(
        Path(str(folder).replace("/td", "td")), "fast", 1, task={"name": EVIL}, options={"forget_gate": EVIL, EVIL: EVIL},
        training={"optimizer": EVIL}, engine=EVIL, key=EVIL,
    )  # fmt: skip
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / "options.json").write_text(json.dumps({"kind": EVIL}))
    warnings = make_report(tmp_path / "runs", tmp_path / "out", items=[])
    assert len(warnings) == 1
    page = (tmp_path / "out" / "index.html").read_text()
    read = Reader(page)
    assert read.open == []
    assert read.tags.count("script") == 2 and "img" not in read.tags
    assert not any(name.startswith("on") for name, _ in read.attributes)
    assert any("<script>alert(1)" in cell for cell in read.cells)  # shown as what it is
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "<script" not in markdown and "<img" not in markdown
    for table in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1  # no cell broken in two
    names = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert all(re.fullmatch(r"[\w.]+", name) for name in names) and len(names) == 12


@pytest.mark.usefixtures("no_pictures")
def test_the_page_needs_nothing_from_anywhere(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("fast",), seeds=1)
    _, page, _ = report(tmp_path, [])
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    read = Reader(page)
    assert [
        value for name, value in read.attributes if name in ("src", "href") and not (value or "").startswith("#")
    ] == ["data:,"]
    policy = next(value for name, value in read.attributes if name == "content" and "default-src" in (value or ""))
    assert "default-src 'none'" in (policy or "") and "script-src 'sha256-" in (policy or "")
    assert any(name == "name" and value == "viewport" for name, value in read.attributes)


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for place in ("here", "there/deeper"):
        write_sweep(tmp_path / place / "runs", ("sigmoid", "fast"), seeds=2)
        (tmp_path / place / "runs" / "bad").mkdir()
        (tmp_path / place / "runs" / "bad" / "options.json").write_text("{")
        out = tmp_path / place / "out"
        make_report(tmp_path / place / "runs", out, items=[item(models=("sigmoid", "fast"), seeds=2)])
        made.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert made[0] == made[1]
    assert len(made[0]) == 7


@pytest.mark.usefixtures("no_pictures")
def test_a_long_run_is_thinned_for_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", "fast", 0, evaluations=2500)
    markdown, page, charts = report(tmp_path, [])
    series = charts["other_1_metric"]["series"][0]
    assert len(series["updates"]["x"]) == len(series["runs"][0]["value"]) == 834
    assert series["updates"]["x"][:2] == [0, 150] and series["updates"]["x"][-1] == 50 * 2499  # the last one always
    assert series["runs"][0]["value"][-1] == pytest.approx(mse("fast", 0, 2499), rel=1e-5)
    said = "Thinned: curves with more than 1000 evaluations show one in 3; the tables use all."
    assert said in markdown and said in page


@pytest.mark.usefixtures("no_pictures")
def test_progress_is_told(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("fast",), seeds=1)
    seen: list[tuple[int, int]] = []
    make_report(tmp_path / "runs", tmp_path / "out", lambda done, total, what: seen.append((done, total)), items=[])
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_nothing_to_report(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for runs, reason in ((tmp_path / "empty", "no folder there contains"), (tmp_path / "none", "is not a folder")):
        with pytest.raises(ValueError, match=reason):
            make_report(runs, tmp_path / "out", items=[])
    (tmp_path / "empty" / "options.json").write_text("[]")
    with pytest.raises(ValueError, match="no readable run"):
        make_report(tmp_path / "empty", tmp_path / "out", items=[])
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_pictures")
def test_the_declared_experiments(tmp_path: Path) -> None:
    """Every label of the paper has its line; a run is recognised by its key, at its budget and nowhere else."""
    declared = EXPERIMENTS["fig:adding_mse"].runs("desk")
    for one in (declared[0], declared[-1]):
        write_run(tmp_path / "runs" / one.folder, "fast", one.seed, key=one.run.key())
    make_report(tmp_path / "runs", tmp_path / "out")
    markdown = (tmp_path / "out" / "report.md").read_text()
    rows = dict(
        re.findall(r"^\| ((?:fig|tab):\S+) \| (not run|partial) \|", markdown.replace("\\_", "_"), re.MULTILINE)
    )
    assert set(rows) == set(EXPERIMENTS)
    assert {label for label, verdict in rows.items() if verdict == "partial"} == {
        "fig:adding_mse",
        "fig:adding_runtime",
    }
    assert f"2 of {len(declared)} found" in markdown
    assert "Other runs" not in markdown
    assert len({item.label for item in paper_items()}) == len(EXPERIMENTS)


@pytest.mark.usefixtures("no_pictures")
def test_a_loss_that_is_the_metric_is_drawn_once(tmp_path: Path) -> None:
    write_sweep(tmp_path / "runs", ("fast",), seeds=1)
    path = tmp_path / "runs" / "fast" / "seed0" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "loss": line["mse"]}) + "\n" for line in lines))
    stem = "other_1"
    assert set(report(tmp_path, [])[2]) == {f"{stem}_metric", f"{stem}_time_scales"}
