"""The sections of a report: one for each label of the paper, one for the other runs, one for every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.experiments import View
from gatedrnn.lab.report import ledger, lengths, ratios, tables, text, text_claims, theory, verdicts
from gatedrnn.lab.report.charts import learning_curves, time_scale_charts
from gatedrnn.lab.report.comparisons import compare, papers_values, sentences
from gatedrnn.lab.report.document import Chart, Document, Section, Table
from gatedrnn.lab.report.groups import Group, by_options, name_of_model, runs_of
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.measure import LOSS
from gatedrnn.lab.report.runs import LabRun
from gatedrnn.lab.report.stability import stability_charts
from gatedrnn.lab.report.theory import Theory
from gatedrnn.lab.report.update_times import UpdateTimes


def document(
    runs: Sequence[LabRun],
    warnings: Sequence[str],
    items: Sequence[Item],
    found_theory: Theory | None = None,
    times: UpdateTimes | None = None,
) -> Document:
    """The whole report of these runs, of the theory if its results were found, and of update times if there are any."""
    epochs = {slot: count for item in items for slot, count in item.epochs.items()}
    runs = [run if run.slot is None else replace(run, declared_epochs=epochs.get(run.slot)) for run in runs]
    said = [*warnings, *_undeclared(runs, items)]
    as_found, by_label = runs, {item.label: item for item in items}
    runs = runs if times is None else [times.retimed(run) for run in runs]
    groups = {item.label: item.groups(runs) for item in items}
    others = by_options([run for run in runs if not any(item.budget_of(run) for item in items)])
    claims = text_claims.lines(text_claims.Evidence(by_label, runs, times, found_theory))
    models = {found.model for several in groups.values() for members in several.values() for found in members}
    looks = Looks(models | {found.model for task in others.values() for found in task})
    of_paper = []
    for item in items:
        if item.own:
            continue
        if item.theory and found_theory is not None:
            of_paper.append(_theory(item, found_theory, said))
        else:
            of_paper.append(_item(item, runs, groups[item.label], looks))
    trained = {item.label for item in items if not item.theory}
    run = [section for section in of_paper if section.verdict != verdicts.NOT_RUN]
    # Items with runs come first; the list of those without is long.
    compared = [section for section in run if section.label in trained]
    own = [item for item in items if item.own and any(groups[item.label].get(name) for name in verdicts.COUNTED)]
    of_own = [_item(item, runs, groups[item.label], looks) for item in own]
    further = [_other(i, task, found, items, looks) for i, (task, found) in enumerate(others.items(), start=1)]
    measured = [ratios.section(times, items)] if times is not None and times.measured else []
    of_text = [text_claims.section(claims)] if claims else []
    if compared:
        first, sections = 0, [*compared, *of_own, *measured, *of_text, *further]
    else:
        first, sections = len(of_own) + len(further), [*of_own, *further, *measured, *of_text]
    sections += [section for section in run if section.label not in trained]
    sections += [section for section in of_paper if section.verdict == verdicts.NOT_RUN]
    sections.append(Section("all-runs", "All runs", tables=[tables.all_runs(as_found)]))
    sections.append(Section("rules", "How to read the verdicts", text=list(verdicts.RULES)))
    overview = ledger.table(of_paper, by_label, runs, claims)
    title = "gatedrnn: runs" if first else "gatedrnn: runs compared with the paper"
    counts = ledger.counts(of_paper, claims)
    return Document(title, counts, [_summary(runs)], _notices(runs, items), said, overview, sections, first)


def _notices(runs: Sequence[LabRun], items: Sequence[Item]) -> list[str]:
    """A notice that smoke runs do not count, if there are any."""
    budgets = [{item.budget_of(run) for item in items} - {None} for run in runs]
    smoke = sum(bool(found) and not found & set(verdicts.COUNTED) for found in budgets)
    if not smoke:
        return []
    if smoke < len(runs):
        return [f"{smoke} of {len(runs)} runs are smoke runs, which do not count for any table or figure."]
    return [
        "All runs found are smoke runs: they only check that everything works, and do not count for any table or "
        "figure. For runs that count, use gatedrnn sweep LABEL --budget desk."
    ]


def _undeclared(runs: Sequence[LabRun], items: Sequence[Item]) -> list[str]:
    """Warnings for runs whose options differ from those that this version declares, one for each grid."""
    keys = {key for item in items for slots in item.declared.values() for key in slots}
    found: dict[str, list[str]] = {}
    for run in runs:
        if run.slot is not None and run.key not in keys and any(item.budget_of(run) for item in items):
            part = f" ({run.part})" if run.part else ""
            found.setdefault(f"{run.slot.grid} at {run.slot.budget} budget{part}", []).append(run.name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: options differ from those currently "
        f"declared for {place}"
        for place, names in found.items()
    ]


def _item(item: Item, runs: Sequence[LabRun], groups: Mapping[str, Sequence[Group]], looks: Looks) -> Section:
    members = item.members(runs)
    best = next((budget for budget in item.declared if groups.get(budget)), None)
    said: list[str] = []
    compared: list[Table] = []
    shown: list[Table] = []
    charts: list[Chart] = []
    parts: list[str] = []
    complete = False
    for budget in verdicts.COUNTED:
        found = groups.get(budget) or []
        if not found:
            continue
        whole = item.is_complete(budget, (run for _, run in members[budget]))
        checked = compare(item, budget, whole, found)
        compared += checked.tables
        said.append(_found(item, budget, [run for _, run in members[budget]]))
        searched = tables.search(members[budget], [run for one in found for run in one.runs])
        shown += [] if searched is None else [searched]
        for task in item.tasks:
            part = [one for whole_group in found if (one := whole_group.of_task(task)) is not None]
            if part:
                shown += _tables_of(item, budget, task, part)
                charts += [*_charts_of(item, budget, task, part, looks), *_monitored(item, budget, task, part, looks)]
        if budget == best:
            complete, parts = whole, checked.parts
    verdict = "" if item.own else verdicts.of_item(best, complete, parts)
    head = ["Not in the paper: an additional experiment."] if item.own else []
    head += [item.setting] if item.setting else []
    if verdict == verdicts.NOT_RUN:
        if item.expected:
            head.append(f"Claims in the paper: {'; '.join(item.expected)}.")
        said.append(_why_not(item, best))
        compared = papers_values(item)
    return Section(
        anchor=_anchor(item),
        title=item.title,
        label=item.label,
        verdict=verdict,
        text=[*head, *said, *_differences(item)],
        verdicts=compared,
        charts=charts,
        tables=shown,
    )


def _theory(item: Item, found: Theory, warnings: list[str]) -> Section:
    """An item that needs no training: the output of gatedrnn theory, and the paper's claims checked against it."""
    pictures = theory.picture(found, item.label, item.title, warnings) if item.label.startswith("fig:") else []
    shown = theory.table(found, item.label, warnings) if item.label.startswith("tab:") else []
    checks = [theory.check(found, sentence) for sentence in item.expected]
    compared = sentences(item.expected, checks, "result", "checked against the output of gatedrnn theory")
    parts = [row[-1] for table in compared for row in table.rows]
    return Section(
        anchor=_anchor(item),
        title=item.title,
        label=item.label,
        verdict=verdicts.of_item(verdicts.COUNTED[0], bool(pictures or shown), parts),
        text=[item.setting, *_differences(item)],
        verdicts=compared,
        pictures=pictures,
        tables=shown,
    )


def _differences(item: Item) -> list[str]:
    """Numbered, in one paragraph."""
    said = "; ".join(f"({number}) {difference}" for number, difference in enumerate(item.differences, start=1))
    return [f"Differences from the paper: {said}."] if said else []


def _anchor(item: Item) -> str:
    return item.label.replace(":", "-")


def _why_not(item: Item, best: str | None) -> str:
    if item.theory:
        return "Not run. It needs no training: run gatedrnn theory --out DIR, then add --theory DIR to gatedrnn report."
    if best is not None:
        return f"Not run: only {best} runs were found, which do not count."
    return f"Not run. To run it: gatedrnn sweep {item.label} --out DIR"


def _found(item: Item, budget: str, runs: Sequence[LabRun]) -> str:
    here, ended = len(runs), sum(item.has_ended(budget, run) for run in runs)
    note = f" ({item.notes[budget]})" if budget in item.notes else ""
    declared = len(item.declared[budget])
    return f"Runs at {budget} budget{note}: {here} of {declared} found, {ended} of them complete."


def _tables_of(item: Item, budget: str, task: str, groups: Sequence[Group]) -> list[Table]:
    name = item.budget_name(budget, runs_of(groups))
    prefix = f"{name[0].upper()}{name[1:]}. " + (f"Task {task}. " if len(item.tasks) > 1 else "")
    if item.view == "length":
        table = lengths.table(groups, item.threshold, len({slot.grid for slot in item.declared[budget].values()}))
        return [replace(table, caption=prefix + table.caption)]
    return _tables(groups, item.threshold, item.view, prefix, item.milestones, len(item.tasks) > 1)


def _tables(
    groups: Sequence[Group],
    threshold: float | None,
    view: View | None,
    prefix: str = "",
    milestones: Sequence[float] = (),
    several: bool = False,
) -> list[Table]:
    """The tables for the charts of a view; all of them for None. If there are several tasks, the comparison with the
    paper has the results of all of them, and the tables of one task are details."""
    found: list[tuple[Table | None, bool]] = [(tables.selected(groups), several), (tables.parts(groups), False)]
    if view != "seconds":
        reached = tables.results(groups, milestones or ([] if threshold is None else [threshold]))
        found.append((reached, several))
    if view in (None, "updates") and threshold is not None:
        found.append((tables.firsts(groups, threshold), False))
    if view in (None, "seconds"):
        found += [(table, view is None) for table in tables.times(groups, threshold)]
    if view in (None, "updates", "time_scales"):
        found.append((tables.time_scales(groups), view != "time_scales"))
    return [
        replace(table, caption=prefix + table.caption, detail=detail) for table, detail in found if table is not None
    ]


def _charts_of(item: Item, budget: str, task: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    several = len(item.tasks) > 1
    stem, title = _named(item, budget, task, groups)
    if item.view == "length":
        return _charts_over_lengths(stem, title, groups, looks, item.threshold)
    scales = time_scale_charts(f"{stem}_time_scales", f"Time scales: {title}", groups, looks)
    measure = groups[0].measure
    if item.view == "time_scales":
        return [*scales, learning_curves(stem, title, groups, measure, looks, item.threshold)]
    against = "seconds" if item.view in ("seconds", "loss") else "updates"
    drawn, threshold = (LOSS, None) if item.view == "loss" else (measure, item.threshold)
    curves = learning_curves(stem, title, groups, drawn, looks, threshold, against)
    if item.view is None and not several:
        return [curves, learning_curves(f"{stem}_loss", f"Loss: {title}", groups, LOSS, looks)]
    return [curves, *scales] if item.view == "updates" else [curves]


def _monitored(item: Item, budget: str, task: str, groups: Sequence[Group], looks: Looks) -> list[Chart]:
    """What the monitor recorded; separately for each length."""
    stem, title = _named(item, budget, task, groups)
    if item.view != "length":
        return stability_charts(stem, title, groups, looks)
    return [
        chart
        for length, part in lengths.by_length(groups).items()
        for chart in stability_charts(f"{stem}_{length}", f"T={length}: {title}", part, looks)
    ]


def _named(item: Item, budget: str, task: str, groups: Sequence[Group]) -> tuple[str, str]:
    """The first part of the names of its charts' files, and the last part of their titles."""
    several = len(item.tasks) > 1
    stem = f"{item.label.replace(':', '_')}_{budget}" + (f"_{task}" if several else "")
    return stem, f"{item.title}{f', {task}' if several else ''} ({item.budget_name(budget, runs_of(groups))})"


def _charts_over_lengths(
    stem: str, title: str, groups: Sequence[Group], looks: Looks, threshold: float | None
) -> list[Chart]:
    """The metric against the length, then the curves of each length."""
    curves = [
        learning_curves(f"{stem}_{length}", f"T={length}: {title}", part, part[0].measure, looks, threshold)
        for length, part in lengths.by_length(groups).items()
    ]
    whole = lengths.chart(stem, title, groups, looks, threshold)
    return curves if whole is None else [whole, *curves]


def _other(number: int, task: str, groups: Sequence[Group], items: Sequence[Item], looks: Looks) -> Section:
    measure = groups[0].measure
    threshold = _threshold(groups, items)
    stem = f"other_{number}"
    charts = [learning_curves(f"{stem}_metric", task, groups, measure, looks, threshold)]
    lines = [line for found in groups for run in found.runs for line in run.metrics]
    if any(line.get("loss") != line.get(measure.name) for line in lines):  # the loss of adding is its metric
        charts.append(learning_curves(f"{stem}_loss", f"{task}: loss", groups, LOSS, looks))
    charts += time_scale_charts(f"{stem}_time_scales", f"{task}: time scales", groups, looks)
    charts += stability_charts(stem, task, groups, looks)
    said = ["These runs belong to no table or figure of the paper."]
    if threshold is not None:
        said.append(f"Threshold: {measure.name} {text.number(threshold)}.")
    return Section(
        f"other-{number}", f"Other runs: {task}", text=said, tables=_tables(groups, threshold, None), charts=charts
    )


def _threshold(groups: Sequence[Group], items: Sequence[Item]) -> float | None:
    """The target of the runs if they share one; else that of the paper's items on the same task."""
    targets = {finite(run.training.get("target")) for found in groups for run in found.runs} - {None}
    if len(targets) == 1:
        return targets.pop()
    task, metric = groups[0].runs[0].task["name"], groups[0].measure.name
    known = [item.threshold for item in items if task in item.tasks and item.metric == metric]
    return next((threshold for threshold in known if threshold is not None), None)


def _summary(runs: Sequence[LabRun]) -> str:
    outcomes: dict[str, int] = {}
    for run in runs:
        words = run.outcome_in_words
        if run.outcome == "finished" and run.part:
            words = "with fewer epochs than declared"
        outcomes[words] = outcomes.get(words, 0) + 1
    models = sorted({name_of_model(run.model) for run in runs})
    ends = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    counted = f"{len(runs)} run{'s' if len(runs) != 1 else ''} ({ends})"
    return f"{counted} of {len(models)} model{'s' if len(models) != 1 else ''}: {', '.join(models)}."
