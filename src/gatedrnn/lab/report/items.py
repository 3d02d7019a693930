"""The items of the paper as the report needs them, from their declarations, and the runs that belong to each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, OWN, DeclaredRun, Experiment, PaperValue, View
from gatedrnn.lab.report.groups import Group, group, in_order
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import LabRun, Slot


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper, or an additional one.

    ``declared`` gives, for each budget, the place of a run by its key; ``notes`` describe each budget, ``data`` names
    the data of those that have only a part of it.
    ``values`` are the paper's, by model and column; ``columns`` gives the units. A column that is a task contains
    its metric. The paper's means are over ``seeds`` seeds.
    """

    label: str
    title: str
    tasks: tuple[str, ...]
    metric: str
    threshold: float | None
    declared: Mapping[str, Mapping[str, Slot]]
    lower_is_better: bool = True
    notes: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""
    expected: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, PaperValue]] = field(default_factory=dict)
    seeds: int = 3
    view: View | None = "updates"
    theory: bool = False
    differences: tuple[str, ...] = ()
    own: bool = False
    milestones: tuple[float, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    #: The declared epochs of each place that has epochs.
    epochs: Mapping[Slot, int] = field(default_factory=dict)

    def budget_name(self, budget: str, runs: Collection[LabRun]) -> str:
        """What a budget is called beside the results of these runs. Neither desk results nor incomplete runs are ever
        shown as the paper's setting, with which an additional experiment is not compared."""
        complete = sum(run.complete for run in runs)
        part = "" if complete == len(runs) else ", some runs incomplete" if complete else ", incomplete runs"
        if budget == "paper":
            return ("full budget" if self.own else "the paper's setting") + part
        data = f", {self.data[budget]}" if budget in self.data else ""
        return f"{budget} budget{data}" + ("" if self.own else ", not the paper's setting") + part

    def budget_of(self, run: LabRun) -> str | None:
        """The budget at which the run belongs to this item: from the sweep's declaration, else from its key."""
        for budget, slots in self.declared.items():
            if run.slot is None:
                if run.key in slots and slots[run.key].task == run.task["name"]:
                    return budget
            elif any(run.slot._replace(seed=0) == slot._replace(seed=0) for slot in slots.values()):
                return budget  # seeds beyond those declared count too
        return None

    def place_of(self, run: LabRun) -> Slot | None:
        """Its task, model and seed as declared; None for a run that does not belong here."""
        budget = self.budget_of(run)
        return None if budget is None else run.slot or self.declared[budget][run.key]

    def members(self, runs: Sequence[LabRun]) -> dict[str, list[tuple[Slot, LabRun]]]:
        """The runs of each budget with their places."""
        found: dict[str, list[tuple[Slot, LabRun]]] = {budget: [] for budget in self.declared}
        for run in runs:
            if (slot := self.place_of(run)) is not None:
                found[slot.budget].append((slot, run))
        return found

    def groups(self, runs: Sequence[LabRun]) -> dict[str, list[Group]]:
        """The runs of each budget by model, over all tasks of the item; for a search, the best on validation data."""
        found: dict[str, dict[str, list[LabRun]]] = {budget: {} for budget in self.declared}
        for budget, members in self.members(runs).items():
            for slot, run in best_of_search(members):
                found[budget].setdefault(slot.model, []).append(run)
        return {
            budget: in_order(group(model, model, members) for model, members in models.items())
            for budget, models in found.items()
        }

    def has_ended(self, budget: str, run: LabRun) -> bool:
        """Whether the run was trained to its end, with a declared length and declared options, or is a further seed."""
        declared = self.declared[budget]
        further = run.slot is not None and run.slot not in declared.values()
        return run.complete and (run.key in declared or further)

    def is_complete(self, budget: str, runs: Iterable[LabRun]) -> bool:
        """Whether every run declared at this budget exists and is complete."""
        declared = self.declared[budget]
        ended = {declared[run.key] for run in runs if run.complete and run.key in declared}
        return set(self.declared[budget].values()) <= ended


def best_of_search(members: Iterable[tuple[Slot, LabRun]]) -> list[tuple[Slot, LabRun]]:
    """The setting of each search with the best evaluation; runs without a search are returned unchanged."""
    chosen: dict[Slot, tuple[Slot, LabRun]] = {}
    for slot, run in members:
        place = slot._replace(setting="")
        if place not in chosen or not slot.setting or _is_better(run, chosen[place][1]):
            chosen[place] = (slot, run)
    return list(chosen.values())


def _is_better(run: LabRun, other: LabRun) -> bool:
    """Whether its best evaluation is better; a run without evaluations never is."""
    ours, others = run.value("best"), other.value("best")
    if ours is None or others is None:
        return others is None and ours is not None
    return ours < others if run.measure.lower_is_better else ours > others


def paper_items() -> list[Item]:
    """Every table and figure of the paper."""
    return [item_of(experiment) for experiment in EXPERIMENTS.values()]


def own_items() -> list[Item]:
    """Experiments that are not in the paper."""
    return [item_of(experiment) for experiment in OWN.values()]


def measures_of(items: Iterable[Item]) -> dict[str, Measure]:
    """What the items measure, by task: for runs whose files do not name it."""
    return {
        task: Measure(item.metric, item.lower_is_better, log=item.lower_is_better)
        for item in items
        if item.metric
        for task in item.tasks
    }


def item_of(experiment: Experiment) -> Item:
    """The item of a declared experiment."""
    places = {
        budget: [(_slot(one), one.run) for one in experiment.runs(budget)]
        for budget in BUDGETS
        if budget in experiment.notes
    }
    return Item(
        label=experiment.label,
        title=experiment.title,
        tasks=experiment.tasks,
        metric=experiment.metric,
        threshold=experiment.threshold,
        declared={budget: {run.key(): slot for slot, run in several} for budget, several in places.items()},
        lower_is_better=experiment.lower_is_better,
        notes={str(budget): note for budget, note in experiment.notes.items()},
        setting=experiment.setting,
        expected=experiment.expected,
        columns=experiment.columns,
        values=experiment.values,
        seeds=experiment.seeds,
        view=experiment.view,
        theory=experiment.theory,
        differences=experiment.differences,
        own=experiment.own,
        milestones=experiment.milestones,
        data={str(budget): data for budget, data in experiment.data.items()},
        epochs={
            slot: run.training.epochs for several in places.values() for slot, run in several if run.training.epochs
        },
    )


def _slot(one: DeclaredRun) -> Slot:
    return Slot(one.grid or "", one.budget or "", one.run.task.name, one.model_name, one.seed, one.setting)
