"""Declared experiments: data about a table or figure of the paper, and its runs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gatedrnn.lab.models import ModelOptions
from gatedrnn.lab.tasks import Task
from gatedrnn.lab.training import Run, Training

BudgetName = Literal["paper", "desk", "smoke"]
#: paper: the full setting. desk: a few hours on two cores, the same task made smaller. smoke: seconds, for tests.
BUDGETS: tuple[BudgetName, ...] = ("paper", "desk", "smoke")
#: What a figure shows: the metric against updates or seconds, the loss, time scales, or the best metric against the
#: length of the sequences. None for a table.
View = Literal["updates", "seconds", "loss", "time_scales", "length"]


class NotRunnableError(NotImplementedError):
    """The experiment has no runs; the message gives the reason and, if there is one, the alternative."""


@dataclass(frozen=True)
class Variant:
    """A model by its name in the paper, with its own learning rate if it has one."""

    name: str
    model: ModelOptions
    lr: float | None = None


@dataclass(frozen=True)
class Budget:
    """One size of an experiment. ``note`` describes it; ``fewer`` gives the seeds of models with fewer of them;
    ``data`` names its data where that is only a part.

    ``search`` gives values of training options such as lr and clip. Every combination is a run; the one that is best on
    validation data is used.
    """

    note: str
    task: Task
    training: Training
    models: tuple[Variant, ...]
    seeds: int
    fewer: Mapping[str, int] = field(default_factory=dict)
    search: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    data: str = ""

    def settings(self) -> Iterator[dict[str, float]]:
        """Every combination of the search; one empty combination without a search."""
        for values in itertools.product(*self.search.values()):
            yield dict(zip(self.search, values, strict=True))


@dataclass(frozen=True)
class Grid:
    """Runs of one task by budget. Experiments that show the same runs share one grid, and each may show some of its
    models; its name is that of the runs' folder."""

    name: str
    budgets: Mapping[BudgetName, Budget]

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.budgets["paper"].task.name


@dataclass(frozen=True)
class DeclaredRun:
    """One run of a grid. ``folder`` is where a sweep puts it, below its own folder."""

    model_name: str
    seed: int
    run: Run
    folder: str
    #: None for a run that belongs to no grid.
    grid: str | None = None
    budget: BudgetName | None = None
    #: Its place in a search, "lr=0.001,clip=1"; empty without a search.
    setting: str = ""

    @property
    def says(self) -> dict[str, Any] | None:
        """The declaration in its options.json, from which a report recognises it; None for a run outside a grid."""
        if self.grid is None:
            return None
        task, model, seed = self.run.task.name, self.model_name, self.seed
        said = {"grid": self.grid, "budget": self.budget, "task": task, "model": model, "seed": seed}
        return {**said, "setting": self.setting} if self.setting else said


@dataclass(frozen=True)
class PaperValue:
    """A number printed in the paper; ``diverged`` if an asterisk marks a diverged training."""

    value: float
    std: float | None = None
    diverged: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper by its label, or an additional one, made of grids or of theory."""

    label: str
    title: str
    tasks: tuple[str, ...]
    setting: str
    #: The metric of the curves or numbers, and whether lower is better.
    metric: str = ""
    lower_is_better: bool = False
    #: The value of the metric that training should reach.
    threshold: float | None = None
    #: The values of the metric for which the table shows the updates to reach them; if empty, the threshold alone.
    milestones: tuple[float, ...] = ()
    view: View | None = None
    #: The number of seeds of the paper's means.
    seeds: int = 0
    #: The columns of the paper's table with their units, and its numbers by model and column.
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, PaperValue]] = field(default_factory=dict)
    #: What the paper's curves or numbers show, in words.
    expected: tuple[str, ...] = ()
    #: Known or possible differences from the paper's setting.
    differences: tuple[str, ...] = ()
    #: One for each of its tasks.
    grids: tuple[Grid, ...] = ()
    #: The models that it shows, in the paper's order; if empty, all models of the grids.
    shown: tuple[str, ...] = ()
    #: It needs no training: ``gatedrnn theory`` makes it.
    theory: bool = False
    #: It is not in the paper: there is nothing to compare with.
    own: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models, in the paper's order."""
        if self.shown:
            return self.shown
        found = [v.name for grid in self.grids for v in grid.budgets["paper"].models]
        return tuple(dict.fromkeys(found))

    @property
    def notes(self) -> Mapping[BudgetName, str]:
        """A description of each of its budgets; empty if it has no runs."""
        if len(self.grids) == 1:
            return {name: budget.note for name, budget in self.grids[0].budgets.items()}
        return {
            name: "; ".join(f"{grid.task}: {grid.budgets[name].note}" for grid in self.grids)
            for name in (self.grids[0].budgets if self.grids else ())
        }

    @property
    def data(self) -> Mapping[BudgetName, str]:
        """The data of each budget that has only a part of it."""
        named: dict[BudgetName, dict[str, None]] = {}
        for grid in self.grids:
            for name, budget in grid.budgets.items():
                if budget.data:
                    named.setdefault(name, {})[budget.data] = None
        return {name: ", ".join(found) for name, found in named.items()}

    def runs(
        self,
        budget: BudgetName,
        models: Collection[str] | None = None,
        seeds: Collection[int] | None = None,
        tasks: Collection[str] | None = None,
    ) -> list[DeclaredRun]:
        """Its runs at this budget, optionally only those of some models, seeds and tasks.

        A task is named by its own name or by that of its grid: a figure over lengths has one grid for each length.

        Raises NotRunnableError with the reason if it has no runs.
        """
        if self.theory:
            raise NotRunnableError(f"{self.label} needs no training: run gatedrnn theory --out DIR")
        return [
            declared
            for grid in self.grids
            if tasks is None or grid.task in tasks or grid.name in tasks
            for declared in declared_runs(grid, budget)
            if declared.model_name in (self.models if models is None else models)
            and (seeds is None or declared.seed in seeds)
        ]


@dataclass(frozen=True)
class TextClaim:
    """A claim of the paper's text that is in none of its tables and figures."""

    label: str
    sentence: str
    #: The experiment that shows it: its runs, the times of its models' updates, or the theory.
    shown_by: str


def declared_runs(grid: Grid, budget: BudgetName) -> list[DeclaredRun]:
    """All runs of a grid at one budget: model by model, seed by seed."""
    runs = runs_of(grid.budgets[budget], f"{grid.name}/{budget}")
    return [dataclasses.replace(run, grid=grid.name, budget=budget) for run in runs]


def runs_of(size: Budget, place: str) -> list[DeclaredRun]:
    """All runs of one size, in folders below ``place``."""
    found = []
    for variant in size.models:
        lr = size.training.lr if variant.lr is None else variant.lr
        for searched in size.settings():
            setting = ",".join(f"{option}={value:g}" for option, value in searched.items())
            folder = "/".join(filter(None, (place, variant.name, setting)))
            options: dict[str, Any] = {"lr": lr, **searched}
            for seed in range(size.fewer.get(variant.name, size.seeds)):
                run = Run(size.task, variant.model, dataclasses.replace(size.training, seed=seed, **options))
                found.append(DeclaredRun(variant.name, seed, run, f"{folder}/seed{seed}", setting=setting))
    return found
