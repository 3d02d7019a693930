"""Runs that differ in their seed alone form a group: one model in one setting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatedrnn.lab.analysis import Arrival, Arrivals, Mean, arrival, arrivals_of, mean_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.experiments import MODEL_NAMES
from gatedrnn.lab.experiments.models import GRU_SUFFIX, variants
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import LabRun

# Options of the training that do not change the result of an update.
_NO_DIFFERENCE = ("seed", "threads", "processes", "checkpoint_seconds", "tensorboard", "monitor", "budget_seconds")
# The options that distinguish the paper's models, and the names by these options.
_TRAITS = ("cell", "tied", "forget_gate", "forget_init")
_NAMES = {tuple(getattr(one.model, t) for t in _TRAITS): one.name for one in variants(MODEL_NAMES, hidden_size=1)}


@dataclass(frozen=True)
class Group:
    """The seeds of one model, in order. ``name`` distinguishes it from the others, ``model`` determines its colour."""

    name: str
    model: str
    runs: tuple[LabRun, ...]

    @property
    def measure(self) -> Measure:
        """What its runs measure."""
        return self.runs[0].measure

    def mean(self, which: str) -> Mean | None:
        """Over seeds, of the metric in the "best" or the "final" evaluation; None if a run has no finite value."""
        values = [run.value(which) for run in self.runs]
        finite = [value for value in values if value is not None]
        return mean_of(finite) if len(finite) == len(values) else None

    def arrival_of_each(self, threshold: float, clock: Clock = "update") -> dict[int, Arrival]:
        """By seed, where the run reached the threshold."""
        return {
            run.seed: arrival(
                run.metrics,
                run.measure.name,
                threshold,
                run.measure.lower_is_better,
                clock,
                diverged=run.outcome == "diverged",
            )
            for run in self.runs
        }

    def arrivals(self, threshold: float, clock: Clock = "update") -> Arrivals:
        """The seeds together."""
        return arrivals_of(list(self.arrival_of_each(threshold, clock).values()))

    def on(self, clock: str) -> Group | None:
        """The part of the group that was timed on this clock."""
        return self._part(run for run in self.runs if run.clock == clock)

    def of_task(self, task: str) -> Group | None:
        """The part of the group that learned this task."""
        return self._part(run for run in self.runs if run.task["name"] == task)

    def _part(self, runs: Iterable[LabRun]) -> Group | None:
        chosen = tuple(runs)
        return Group(self.name, self.model, chosen) if chosen else None


def group(name: str, model: str, runs: Iterable[LabRun]) -> Group:
    """A group with its seeds in order."""
    return Group(name, model, tuple(sorted(runs, key=lambda run: (run.seed, run.name))))


def runs_of(groups: Iterable[Group]) -> list[LabRun]:
    """The runs of all these groups."""
    return [run for found in groups for run in found.runs]


def clocks_of(groups: Iterable[Group]) -> list[str]:
    """What the times of these groups were measured on."""
    return sorted({run.clock for run in runs_of(groups)})


def in_order(groups: Iterable[Group]) -> list[Group]:
    """The paper's models in the paper's order, then the others by name."""
    order = [*MODEL_NAMES, *(f"{name}{GRU_SUFFIX}" for name in MODEL_NAMES)]
    place = {name: i for i, name in enumerate(order)}
    return sorted(groups, key=lambda found: (place.get(found.model, len(place)), found.model, found.name))


def by_options(runs: Sequence[LabRun]) -> dict[str, list[Group]]:
    """Runs by their task (a line of text), and for each task the groups, with names that distinguish them."""
    tasks: dict[str, list[LabRun]] = {}
    for run in runs:
        tasks.setdefault(describe(run.task), []).append(run)
    return {task: _groups(tasks[task]) for task in sorted(tasks)}


def describe(options: Mapping[str, Any]) -> str:
    """Options as "name, option=value, …", without those that are not set."""
    rest = (f"{key}={_value(value)}" for key, value in options.items() if key != "name" and value is not None)
    return ", ".join([str(options.get("name", "")), *rest]).removeprefix(", ")


def name_of_model(model: Mapping[str, Any]) -> str:
    """The paper's name for a model where it has one, else its cell, gate and initialiser."""
    traits = tuple(model.get(trait) for trait in _TRAITS)
    if traits in _NAMES:
        return _NAMES[traits]
    cell, tied, gate, init = traits
    like = _NAMES.get(("lstm", True, gate, init))
    if cell == "gru" and like is not None:
        return f"{like}{GRU_SUFFIX}"
    kind = "" if (cell, tied) == ("lstm", True) else f"untied {cell} " if cell == "lstm" else f"{cell} "
    return f"{kind}{gate}" + ("" if init in (None, "constant") else f" {init}")


def lstm_of(model: str) -> str:
    """The name of the LSTM with the same gate, for a GRU of the paper; the name itself for any other model."""
    return model.removesuffix(GRU_SUFFIX) if model.removesuffix(GRU_SUFFIX) in MODEL_NAMES else model


def _groups(runs: Sequence[LabRun]) -> list[Group]:
    settings: dict[str, list[LabRun]] = {}
    for run in runs:
        settings.setdefault(json.dumps(_setting(run), sort_keys=True), []).append(run)
    flat = {setting: _setting(members[0]) for setting, members in settings.items()}
    named = {setting: name_of_model(members[0].model) for setting, members in settings.items()}
    groups = []
    for setting, members in settings.items():
        alike = [flat[other] for other in settings if named[other] == named[setting]]
        differing = sorted(key for key in flat[setting] if any(other.get(key) != flat[setting][key] for other in alike))
        suffix = "".join(f", {key}={_value(flat[setting][key])}" for key in differing)
        groups.append(group(named[setting] + suffix, named[setting], members))
    return in_order(groups)


def _setting(run: LabRun) -> dict[str, Any]:
    training = {key: value for key, value in run.training.items() if key not in _NO_DIFFERENCE}
    return {**run.model, **training}


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
