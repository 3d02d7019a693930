"""Results compared with the paper's: its numbers in a table, and its sentences checked. Each part gets a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatedrnn.lab.analysis import Mean, mean_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.experiments import PaperValue
from gatedrnn.lab.report import text, verdicts
from gatedrnn.lab.report.checks import CHECKS
from gatedrnn.lab.report.claims import Checked, ratio_of
from gatedrnn.lab.report.document import Table
from gatedrnn.lab.report.groups import Group, runs_of
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.runs import LabRun, UpdateTime

_BASELINE = "sigmoid"  # the times of the others are divided by its time


@dataclass(frozen=True)
class Compared:
    """Tables that compare, and the verdicts in them."""

    tables: list[Table]
    parts: list[str]


def compare(item: Item, budget: str, complete: bool, groups: Sequence[Group]) -> Compared:
    """Compare the runs of one budget with the paper; ``complete``: every declared run ended."""
    by_model = {found.model: found for found in groups}
    found, parts = _numbers(item, budget, complete, by_model)
    clock: Clock = "seconds" if item.view in ("seconds", "loss") else "update"
    checks = [
        None if claim is None else claim.check(by_model, item.threshold, clock)
        for claim in (CHECKS.get(sentence) for sentence in item.expected)
    ]
    said = sentences(
        item.expected, checks, f"result, {budget} budget", f"checked at {item.budget_name(budget, runs_of(groups))}"
    )
    lowered = [
        [(*row[:-1], verdicts.at_most_partial(budget, complete, row[-1])) for row in table.rows] for table in said
    ]
    return Compared(
        [*found, *(Table(table.caption, table.header, rows) for table, rows in zip(said, lowered, strict=True))],
        [*parts, *(row[-1] for rows in lowered for row in rows)],
    )


def sentences(expected: Sequence[str], checks: Sequence[Checked | None], column: str, how: str) -> list[Table]:
    """The claims of the paper, sentence by sentence; the last column is the verdict."""
    rows = []
    for sentence, checked in zip(expected, checks, strict=True):
        if checked is None:
            rows.append((sentence, "not checked", "—", "—", verdicts.PARTIAL))
            continue
        held = {True: "holds", False: "does not hold", None: "not decided"}[checked.holds]
        rows.append((sentence, held, checked.what, checked.seen, verdicts.of_claim(checked)))
    header = ("claim in the paper", column, "checked as", "observed", "verdict")
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
    """A row for each model; for each column that was run, the measured value, the paper's and the verdict.

    A column is a task; or, for an item of one task, a part of its test data.
    """
    task_of = {name: name if name in item.tasks else item.tasks[0] for name in item.columns if name != "time"}
    columns = [name for name, task in task_of.items() if any(found.of_task(task) for found in groups.values())]
    if not item.values or not columns:
        return [], []
    times = _times(item.columns["time"], groups) if "time" in item.columns else {}
    rows, parts = [], []
    for model, values in item.values.items():
        cells = [model]
        for name in columns:
            unit, paper = item.columns[name], values.get(name)
            part = groups[model].of_task(task_of[name]) if model in groups else None
            counted, remarks = ([], []) if part is None else _counted(part.runs)
            ours = _result(counted, name, unit)
            verdict = "—"
            if paper is not None:
                verdict = verdicts.NOT_RUN if part is None else _verdict(item, ours, paper, budget, complete)
                parts.append(verdict)
            shown = "—" if part is None else _ours(ours, counted, remarks, unit)
            cells += [shown, _paper(paper, unit), verdict]
        rows.append((*cells, *(_time_cells(model, item.values, times, item.columns["time"]) if times else ())))
    header = ["model"]
    for name in columns:
        header += [f"{name}, {item.columns[name]}: measured, {budget} budget", "paper", "verdict"]
    if times:
        header += [f"{item.columns['time']}: measured, {budget} budget", "paper", f"÷ {_BASELINE}: measured", "paper"]
    name = item.budget_name(budget, runs_of(groups.values()))
    caption = [f"Measured at {name}, and the paper's values: mean ± standard deviation (n seeds)."]
    if any(_is_test(item.columns[name]) for name in columns):
        caption.append("Tested once, with the weights of the best validation.")
    if times:
        clocks = {time.clocks for time in times.values()}
        place = f", measured on {' and '.join(clocks.pop())}," if len(clocks) == 1 else ""
        caption.append(f"Times{place} depend on the machine and have no verdict.")
        if any(time.update for time in times.values()):
            caption.append(f"÷ {_BASELINE}: median of the ratios within each round, not the ratio of the medians.")
    if lacking := [task for task in item.tasks if task in item.columns and task not in columns]:
        caption.append(f"Not run: {', '.join(lacking)}.")
    return [Table(" ".join(caption), tuple(header), rows, models=0)], parts


def _counted(runs: Sequence[LabRun]) -> tuple[list[LabRun], list[str]]:
    """The runs that a mean is of, and remarks: the complete ones if there are any, else all if of the same length."""
    complete = [run for run in runs if run.complete]
    rest = len(runs) - len(complete)
    if not rest:
        return complete, []
    if complete:
        return complete, [f"{rest} incomplete not counted"]
    ends = {run.ended for run in runs}
    return (list(runs), [*ends]) if len(ends) == 1 else ([], [f"{rest} incomplete, of different lengths"])


def _is_test(unit: str) -> bool:
    return "test" in unit.split()


def _result(runs: Sequence[LabRun], column: str, unit: str) -> Mean | None:
    """Over seeds: the test result if the column is one, else the best evaluation. None if a run has no value."""
    values = [run.tested_in(column) if _is_test(unit) else run.value("best") for run in runs]
    scale = 100 if unit.startswith("%") else 1
    known = [scale * value for value in values if value is not None]
    return mean_of(known) if known and len(known) == len(values) else None


def _verdict(item: Item, ours: Mean | None, paper: PaperValue, budget: str, complete: bool) -> str:
    found = verdicts.of_number(ours, paper.value, item.seeds, paper.std)
    return verdicts.at_most_partial(budget, complete, found)


def _ours(found: Mean | None, runs: Sequence[LabRun], remarks: Sequence[str], unit: str) -> str:
    shown = "—" if found is None else text.percent(found) if unit.startswith("%") else text.mean(found)
    diverged = sum(run.outcome == "diverged" for run in runs)
    return f"{shown} ({', '.join([f'n = {len(runs)}', *remarks, *([f'{diverged} diverged'] if diverged else [])])})"


def _paper(value: PaperValue | None, unit: str = "") -> str:
    if value is None:
        return "—"
    digits = 2 if unit.startswith("%") or _is_test(unit) else 1 if unit.startswith("minutes") else None
    written = text.number if digits is None else (lambda number: f"{number:.{digits}f}")
    spread = "" if value.std is None else f" ± {written(value.std)}"
    return f"{written(value.value)}{spread}" + (" (diverged)" if value.diverged else "")


@dataclass(frozen=True)
class _Time:
    """The time per epoch of a model, in the paper's unit, and what it was measured on."""

    mean: Mean
    clocks: tuple[str, ...]
    #: The time of one update, if it was measured separately.
    update: UpdateTime | None


def _times(unit: str, groups: Mapping[str, Group]) -> dict[str, _Time]:
    """By model, on the task that the unit names last."""
    found = {}
    for model, whole in groups.items():
        part = whole.of_task(unit.split()[-1])
        runs = [] if part is None else [run for run in part.runs if run.seconds_an_epoch is not None]
        if runs:
            # A time that was measured separately is one number for all seeds.
            timed = runs[:1] if runs[0].update_time else runs
            seconds = [run.seconds_an_epoch or 0.0 for run in timed]
            mean = mean_of([second / (60 if unit.startswith("minutes") else 1) for second in seconds])
            found[model] = _Time(mean, tuple(sorted({run.clock for run in runs})), runs[0].update_time)
    return found


def _time_cells(
    model: str, values: Mapping[str, Mapping[str, PaperValue]], times: Mapping[str, _Time], unit: str
) -> list[str]:
    """The measured time and the paper's, then both divided by the baseline's; the measured ones only on one clock."""
    ours, paper = times.get(model), values[model].get("time")
    shown = "—" if ours is None else text.mean(ours.mean)
    if ours is not None and len({time.clocks for time in times.values()}) > 1:
        shown += f" on {' and '.join(ours.clocks)}"
    base, papers_base = times.get(_BASELINE), values.get(_BASELINE, {}).get("time")
    ratio = papers_ratio = "—"
    if ours is not None and base is not None and ours.clocks == base.clocks and base.mean.mean > 0:
        by_rounds = ratio_of(ours.update, base.update)
        ratio = text.number(by_rounds.median if by_rounds else ours.mean.mean / base.mean.mean, 3)
    if paper is not None and papers_base is not None:
        papers_ratio = text.number(paper.value / papers_base.value, 3)
    return [shown, _paper(paper, unit), ratio, papers_ratio]
