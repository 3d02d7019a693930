"""What the report needs to know of an item of the paper, taken from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatedrnn.lab.experiments import EXPERIMENTS, Experiment, PaperValue, View


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper. ``declared`` gives, for each budget, (model, seed) by the key of the run.

    ``notes`` say what each budget is. ``values`` are the paper's, by model and column; ``columns`` gives the units, and
    a column that is a task holds the metric there. The paper's means are over ``seeds`` seeds.
    """

    label: str
    title: str
    task: str
    metric: str
    threshold: float | None
    declared: Mapping[str, Mapping[str, tuple[str, int]]]
    notes: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""
    expected: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, PaperValue]] = field(default_factory=dict)
    seeds: int = 3
    view: View = "updates"
    theory: bool = False
    pending: str = ""
    differences: tuple[str, ...] = ()


def paper_items() -> list[Item]:
    """Every table and figure of the paper."""
    return [item_of(experiment) for experiment in EXPERIMENTS.values()]


def item_of(experiment: Experiment) -> Item:
    """The item of a declared experiment."""
    return Item(
        label=experiment.label,
        title=experiment.title,
        task=experiment.tasks[0] if experiment.tasks else "",
        metric=experiment.metric,
        threshold=experiment.threshold,
        declared={
            budget: {one.run.key(): (one.model_name, one.seed) for one in experiment.runs(budget)}
            for budget in experiment.notes
        },
        notes={str(budget): note for budget, note in experiment.notes.items()},
        setting=experiment.setting,
        expected=experiment.expected,
        columns=experiment.columns,
        values=experiment.values,
        seeds=experiment.seeds,
        view=experiment.view or "updates",
        theory=experiment.theory,
        pending=experiment.pending or "",
        differences=experiment.differences,
    )
