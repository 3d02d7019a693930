"""Our results beside the paper's: its numbers in a table, and its sentences checked. Each part gets a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatedrnn.lab.analysis import Mean, mean_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.experiments import PaperValue
from gatedrnn.lab.report import text, verdicts
from gatedrnn.lab.report.checks import CHECKS
from gatedrnn.lab.report.claims import Checked
from gatedrnn.lab.report.document import Table
from gatedrnn.lab.report.groups import Group
from gatedrnn.lab.report.items import Item

#: What the budgets are called. A desk result is never shown as the paper's setting.
BUDGET_NAMES = {"paper": "the paper's setting", "desk": "desk budget, not the paper's setting"}


@dataclass(frozen=True)
class Compared:
    """Tables that compare, and the verdicts in them."""

    tables: list[Table]
    parts: list[str]


def compare(item: Item, budget: str, complete: bool, groups: Sequence[Group]) -> Compared:
    """The runs of one budget beside the paper; ``complete``: every run that is declared there ended."""
    by_model = {found.model: found for found in groups}
    found, parts = _numbers(item, budget, complete, by_model)
    clock: Clock = "seconds" if item.view in ("seconds", "loss") else "update"
    checks = [
        None if claim is None else claim.check(by_model, item.threshold, clock)
        for claim in (CHECKS.get(sentence) for sentence in item.expected)
    ]
    said = sentences(item.expected, checks, f"in our runs, {budget}", f"checked at {BUDGET_NAMES[budget]}")
    lowered = [
        [(*row[:-1], verdicts.at_most_partial(budget, complete, row[-1])) for row in table.rows] for table in said
    ]
    return Compared(
        [*found, *(Table(table.caption, table.header, rows) for table, rows in zip(said, lowered, strict=True))],
        [*parts, *(row[-1] for rows in lowered for row in rows)],
    )


def sentences(expected: Sequence[str], checks: Sequence[Checked | None], column: str, how: str) -> list[Table]:
    """What the paper says, sentence by sentence; the last column is the verdict."""
    rows = []
    for sentence, checked in zip(expected, checks, strict=True):
        if checked is None:
            rows.append((sentence, "not checked", "—", "—", verdicts.PARTIAL))
            continue
        held = {True: "holds", False: "does not hold", None: "not decided"}[checked.holds]
        rows.append((sentence, held, checked.what, checked.seen, verdicts.of_claim(checked)))
    header = ("the paper", column, "checked as", "seen", "verdict")
    return [Table(f"What the paper says, {how}.", header, rows)] if rows else []


def papers_values(item: Item) -> list[Table]:
    """The paper's numbers as it prints them, for an item that was not run."""
    if not item.values:
        return []
    header = ("model", *(f"{name} ({unit})" for name, unit in item.columns.items()))
    rows = [
        (model, *(_paper(values.get(name), unit) for name, unit in item.columns.items()))
        for model, values in item.values.items()
    ]
    return [Table("The paper's values.", header, rows)]


def _numbers(item: Item, budget: str, complete: bool, groups: Mapping[str, Group]) -> tuple[list[Table], list[str]]:
    """A row for each model, and for each task that was run ours, the paper's and the verdict."""
    tasks = [task for task in item.columns if any(found.of_task(task) for found in groups.values())]
    if not item.values or not tasks:
        return [], []
    rows, parts = [], []
    for model, values in item.values.items():
        cells = [model]
        for task in tasks:
            unit, paper = item.columns[task], values.get(task)
            part = groups[model].of_task(task) if model in groups else None
            ours = None if part is None else _result(part, unit)
            verdict = "—"
            if paper is not None:
                verdict = verdicts.NOT_RUN if part is None else _verdict(item, ours, paper, budget, complete)
                parts.append(verdict)
            cells += [_ours(ours, part, unit), _paper(paper, unit), verdict]
        rows.append((*cells, *_time(item, values, groups.get(model))))
    header = ["model"]
    for task in tasks:
        header += [f"{task}, {item.columns[task]}: ours, {budget} budget", "paper", "verdict"]
    if "time" in item.columns:
        header += [f"{item.columns['time']}: ours, {budget} budget", "paper"]
    caption = [f"Ours at {BUDGET_NAMES[budget]}, beside the paper's values: mean ± standard deviation (n seeds)."]
    if any(_is_test(item.columns[task]) for task in tasks):
        caption.append("Tested once, with the weights of the best validation.")
    if "time" in item.columns:
        caption.append("Times depend on the machine and have no verdict.")
    if lacking := [task for task in item.tasks if task in item.columns and task not in tasks]:
        caption.append(f"Not run: {', '.join(lacking)}.")
    return [Table(" ".join(caption), tuple(header), rows, models=0)], parts


def _is_test(unit: str) -> bool:
    return "test" in unit.split()


def _result(part: Group, unit: str) -> Mean | None:
    """Over seeds: the result on test data where the column is of that, else the best evaluation. None if one lacks."""
    values = [run.tested if _is_test(unit) else run.value("best") for run in part.runs]
    scale = 100 if unit.startswith("%") else 1
    known = [scale * value for value in values if value is not None]
    return mean_of(known) if len(known) == len(values) else None


def _verdict(item: Item, ours: Mean | None, paper: PaperValue, budget: str, complete: bool) -> str:
    found = verdicts.of_number(ours, paper.value, item.seeds, paper.std)
    return verdicts.at_most_partial(budget, complete, found)


def _ours(found: Mean | None, part: Group | None, unit: str) -> str:
    if part is None:
        return "—"
    shown = "—" if found is None else text.percent(found) if unit.startswith("%") else text.mean(found)
    return f"{shown} (n = {len(part.runs)})"


def _paper(value: PaperValue | None, unit: str = "") -> str:
    if value is None:
        return "—"
    written = (lambda number: f"{number:.2f}") if unit.startswith("%") else text.number
    spread = "" if value.std is None else f" ± {written(value.std)}"
    return f"{written(value.value)}{spread}" + (" (diverged)" if value.diverged else "")


def _time(item: Item, values: Mapping[str, PaperValue], found: Group | None) -> list[str]:
    """Ours and the paper's time an epoch, in the paper's unit; on which machine ours is, where not all are on one."""
    unit = item.columns.get("time")
    if unit is None:
        return []
    part = None if found is None else found.of_task(unit.split()[-1])
    seconds = [] if part is None else [run.seconds_an_epoch for run in part.runs]
    known = [second / (60 if unit.startswith("minutes") else 1) for second in seconds if second is not None]
    ours = text.mean(mean_of(known)) if known else "—"
    clocks = sorted({run.clock for run in part.runs}) if part is not None and known else []
    return [f"{ours} on {' and '.join(clocks)}" if clocks else ours, _paper(values.get("time"))]
