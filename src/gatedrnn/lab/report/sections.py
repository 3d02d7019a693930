"""The sections of a report: one for each label of the paper, one for the other runs, one for every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gatedrnn.lab.analysis import finite, mean_of
from gatedrnn.lab.experiments import PaperValue, View
from gatedrnn.lab.report import tables, text, verdicts
from gatedrnn.lab.report.charts import learning_curves, time_scale_charts
from gatedrnn.lab.report.claims import CHECKS
from gatedrnn.lab.report.document import Chart, Document, Section, Table
from gatedrnn.lab.report.groups import Group, by_options, group, in_order, name_of_model
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.runs import LabRun

_BUDGETS = {"paper": "the paper's setting", "desk": "desk budget, not the paper's setting"}


def document(runs: Sequence[LabRun], warnings: Sequence[str], items: Sequence[Item]) -> Document:
    """The whole report of these runs."""
    known = {key for item in items for declared in item.declared.values() for key in declared}
    others = by_options([run for run in runs if run.key not in known])
    groups = {item.label: {budget: _groups(item, budget, runs) for budget in item.declared} for item in items}
    models = {found.model for found in _flat(groups)} | {found.model for task in others.values() for found in task}
    looks = Looks(models)
    of_paper = [_item(item, groups[item.label], looks) for item in items]
    # What was run comes first; what was not is long, and nobody should have to scroll past it.
    sections = [section for section in of_paper if section.verdict != verdicts.NOT_RUN]
    sections += [_other(i, task, found, items, looks) for i, (task, found) in enumerate(others.items(), start=1)]
    sections += [section for section in of_paper if section.verdict == verdicts.NOT_RUN]
    sections.append(Section("all-runs", "All runs", tables=[tables.all_runs(runs)]))
    sections.append(Section("rules", "How to read the verdicts", text=list(verdicts.RULES)))
    overview = Table(
        "Every table and figure of the paper.",
        ("label", "verdict", "what"),
        [(section.label, section.verdict, section.title) for section in of_paper],
    )
    return Document("gatedrnn: runs beside the paper", [_summary(runs)], list(warnings), overview, sections)


def _flat(groups: Mapping[str, Mapping[str, Sequence[Group]]]) -> list[Group]:
    return [found for budgets in groups.values() for members in budgets.values() for found in members]


def _groups(item: Item, budget: str, runs: Sequence[LabRun]) -> list[Group]:
    members: dict[str, list[LabRun]] = {}
    for run in runs:
        if run.key in item.declared[budget]:
            members.setdefault(item.declared[budget][run.key][0], []).append(run)
    return in_order(group(model, model, found) for model, found in members.items())


def _item(item: Item, groups: Mapping[str, Sequence[Group]], looks: Looks) -> Section:
    best = next((budget for budget in ("paper", "desk", "smoke") if groups.get(budget)), None)
    said: list[str] = []
    compared: list[Table] = []
    shown: list[Table] = []
    charts: list[Chart] = []
    parts: list[str] = []
    complete = False
    for budget in _BUDGETS:
        found = groups.get(budget) or []
        if not found:
            continue
        whole = verdicts.is_complete(list(item.declared[budget].values()), found)
        checked = _comparisons(item, budget, whole, found)
        compared += checked
        shown += _tables(found, item.metric, item.threshold, item.view, f"{_BUDGETS[budget].capitalize()}. ")
        charts += _charts(item, budget, found, looks)
        said.append(_found(item, budget, found))
        if budget == best:
            complete = whole
            parts = [row[-1] for table in checked for row in table.rows]
    verdict = verdicts.of_item(best, complete, parts)
    head = [item.setting] if item.setting else []
    if verdict == verdicts.NOT_RUN:
        if item.expected:
            head.append(f"The paper: {'; '.join(item.expected)}.")
        said.append(_why_not(item, best))
        compared = _paper_table(item)
    return Section(
        anchor=item.label.replace(":", "-"),
        title=item.title,
        label=item.label,
        verdict=verdict,
        text=[*head, *said, *(f"Different from the paper: {difference}" for difference in item.differences)],
        verdicts=compared,
        charts=charts,
        tables=shown,
    )


def _why_not(item: Item, best: str | None) -> str:
    if item.theory:
        return "Not run here. It needs no training: gatedrnn theory --out DIR draws it."
    if item.pending:
        return f"Not run: {item.pending}."
    if best == "smoke":
        return "Not run: there are smoke runs, which only show that the machinery works."
    return f"Not run: gatedrnn sweep {item.label} makes its runs."


def _found(item: Item, budget: str, groups: Sequence[Group]) -> str:
    here = sum(len(found.runs) for found in groups)
    ended = sum(run.complete for found in groups for run in found.runs)
    note = f" ({item.notes[budget]})" if budget in item.notes else ""
    return f"Runs at {budget} budget{note}: {here} of {len(item.declared[budget])} found, {ended} of them ended."


def _paper_table(item: Item) -> list[Table]:
    """The paper's numbers as it prints them."""
    if not item.values:
        return []
    header = ("model", *(f"{name} ({unit})" for name, unit in item.columns.items()))
    rows = [(model, *(_paper_value(row.get(name)) for name in item.columns)) for model, row in item.values.items()]
    return [Table("The paper's values.", header, rows)]


def _paper_value(value: PaperValue | None) -> str:
    if value is None:
        return "—"
    spread = "" if value.std is None else f" ± {text.number(value.std)}"
    return f"{text.number(value.value)}{spread}" + (" (diverged)" if value.diverged else "")


def _number_rows(item: Item, budget: str, complete: bool, groups: Mapping[str, Group]) -> list[tuple[str, ...]]:
    """Ours beside the paper's, for every column that is a task; times are not compared with another machine's."""
    rows: list[tuple[str, ...]] = []
    for model, row in item.values.items():
        for column, paper in row.items():
            if column == "time":
                continue
            members = tuple(run for run in groups[model].runs if run.task["name"] == column) if model in groups else ()
            ours = Group(model, model, members).mean("best") if members else None
            if ours is not None and item.columns.get(column, "").startswith("%"):
                ours = mean_of([100 * value for run in members if (value := run.value("best")) is not None])
            verdict = verdicts.NOT_RUN
            if members:
                found = verdicts.of_number(ours, paper.value, item.seeds, paper.std)
                verdict = verdicts.at_most_partial(budget, complete, found)
            rows.append((model, column, text.mean(ours), str(len(members)), _paper_value(paper), verdict))
    return rows


def _comparisons(item: Item, budget: str, complete: bool, groups: Sequence[Group]) -> list[Table]:
    """Our numbers beside the paper's, and its sentences checked; the last column is the verdict."""
    by_model = {found.model: found for found in groups}
    found = []
    if numbers := _number_rows(item, budget, complete, by_model):
        caption = f"Ours at {_BUDGETS[budget]}, beside the paper's values."
        header = ("model", "column", f"ours, {budget}", "seeds", "paper", "verdict")
        found.append(Table(caption, header, numbers, models=0))
    sentences = [_sentence(item, sentence, budget, complete, by_model) for sentence in item.expected]
    if sentences:
        caption = f"What the paper says, checked at {_BUDGETS[budget]}."
        columns = ("the paper", f"in our runs, {budget}", "checked as", "seen", "verdict")
        found.append(Table(caption, columns, sentences))
    return found


def _sentence(item: Item, sentence: str, budget: str, complete: bool, groups: Mapping[str, Group]) -> tuple[str, ...]:
    claim = CHECKS.get(sentence)
    if claim is None:
        return sentence, "not checked", "—", "—", verdicts.PARTIAL
    checked = claim.check(groups, item.threshold, "seconds" if item.view in ("seconds", "loss") else "update")
    held = {True: "holds", False: "does not hold", None: "not decided"}[checked.holds]
    verdict = verdicts.at_most_partial(budget, complete, verdicts.of_claim(checked))
    return sentence, held, checked.what, checked.seen, verdict


def _tables(
    groups: Sequence[Group], metric: str, threshold: float | None, view: View | None = None, prefix: str = ""
) -> list[Table]:
    """The tables behind the charts of a view; all of them for None."""
    found: list[Table | None] = []
    if view != "seconds":
        found.append(tables.results(groups, metric, threshold))
    if view in (None, "updates") and threshold is not None:
        found.append(tables.firsts(groups, threshold))
    if view in (None, "seconds"):
        found += tables.times(groups, threshold)
    if view in (None, "updates", "time_scales"):
        found.append(tables.time_scales(groups))
    return [replace(table, caption=prefix + table.caption) for table in found if table is not None]


def _charts(item: Item, budget: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    stem = f"{item.label.replace(':', '_')}_{budget}"
    title = f"{item.title} ({_BUDGETS[budget]})"
    scales = time_scale_charts(f"{stem}_time_scales", f"Time scales: {title}", groups, looks)
    if item.view == "time_scales":
        return [*scales, learning_curves(stem, title, groups, item.metric, looks, item.threshold)]
    against = "seconds" if item.view in ("seconds", "loss") else "updates"
    drawn = "loss" if item.view == "loss" else item.metric
    threshold = item.threshold if drawn == item.metric else None
    curves = learning_curves(stem, title, groups, drawn, looks, threshold, against)
    return [curves, *scales] if item.view == "updates" else [curves]


def _other(number: int, task: str, groups: Sequence[Group], items: Sequence[Item], looks: Looks) -> Section:
    metric = groups[0].metric
    threshold = _threshold(groups, items)
    stem = f"other_{number}"
    charts = [learning_curves(f"{stem}_metric", task, groups, metric, looks, threshold)]
    lines = [line for found in groups for run in found.runs for line in run.metrics]
    if any(line.get("loss") != line.get(metric) for line in lines):  # the loss of adding is its metric
        charts.append(learning_curves(f"{stem}_loss", f"{task}: loss", groups, "loss", looks))
    charts += time_scale_charts(f"{stem}_time_scales", f"{task}: time scales", groups, looks)
    said = ["These runs belong to no table or figure of the paper."]
    if threshold is not None:
        said.append(f"Threshold: {metric} {text.number(threshold)}.")
    return Section(
        f"other-{number}", f"Other runs: {task}", text=said, tables=_tables(groups, metric, threshold), charts=charts
    )


def _threshold(groups: Sequence[Group], items: Sequence[Item]) -> float | None:
    """The target that the runs were given, if it is one; else that of the paper's items on the same task."""
    targets = {finite(run.training.get("target")) for found in groups for run in found.runs} - {None}
    if len(targets) == 1:
        return targets.pop()
    task, metric = groups[0].runs[0].task["name"], groups[0].metric
    return next((i.threshold for i in items if i.task == task and i.metric == metric and i.threshold is not None), None)


def _summary(runs: Sequence[LabRun]) -> str:
    outcomes: dict[str, int] = {}
    for run in runs:
        words = run.outcome.replace("_", " ")
        outcomes[words] = outcomes.get(words, 0) + 1
    models = sorted({name_of_model(run.model) for run in runs})
    ends = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    return f"{len(runs)} runs ({ends}) of {len(models)} models: {', '.join(models)}."
