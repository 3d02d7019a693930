"""Runs that differ in their seed alone form a group: one model in one setting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from gatedrnn.lab.analysis import Arrival, Arrivals, Mean, arrival, arrivals_of, mean_of
from gatedrnn.lab.analysis.thresholds import Clock
from gatedrnn.lab.experiments import MODEL_NAMES
from gatedrnn.lab.experiments.models import GRU_SUFFIX, variants
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import LabRun

# The options on which the result does not depend: those of the training, with the seed, and those of the tasks.
_NO_DIFFERENCE = ("seed", "threads", "processes", "checkpoint_seconds", "tensorboard", "monitor", "budget_seconds")
_BESIDE_IN_TASKS = {
    **dict.fromkeys(("smnist", "psmnist", "scifar", "ptb", "wikitext2"), ("data",)),
    "speech": ("data", "unusable"),
}
# Values of later options that mean what was done before they existed, beside null.
_NEUTRAL = {"read": "last"}
_RUN = "run"  # in place of an option, where no option distinguishes two runs
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

    @property
    def counted(self) -> tuple[LabRun, ...]:
        """The runs that a mean is of: the complete ones, which incomplete ones would distort; all if there are none."""
        return tuple(run for run in self.runs if run.complete) or self.runs

    def mean(self, which: str) -> Mean | None:
        """Over the counted runs, of the metric in the "best" or the "final" evaluation; None if one has no finite
        value."""
        values = [run.value(which) for run in self.counted]
        finite = [value for value in values if value is not None]
        return mean_of(finite) if len(finite) == len(values) else None

    def arrival_of_each(self, threshold: float, clock: Clock = "update") -> dict[int, Arrival]:
        """By seed, where the run reached the threshold."""
        return {run.seed: _arrival(run, threshold, clock) for run in self.runs}

    def arrivals(self, threshold: float, clock: Clock = "update") -> Arrivals:
        """The runs together."""
        return arrivals_of([_arrival(run, threshold, clock) for run in self.runs])

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
        tasks.setdefault(describe(_distinguishing(run.task)), []).append(run)
    found = {name: part for task in sorted(tasks) for name, part in _by_data(task, tasks[task]).items()}
    return {task: _groups(part) for task, part in found.items()}


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


def _arrival(run: LabRun, threshold: float, clock: Clock) -> Arrival:
    measure, diverged = run.measure, run.outcome == "diverged"
    return arrival(run.metrics, measure.name, threshold, measure.lower_is_better, clock, diverged)


def _distinguishing(task: Mapping[str, Any]) -> dict[str, Any]:
    beside = _BESIDE_IN_TASKS.get(str(task.get("name")), ())
    return {name: value for name, value in task.items() if name not in beside}


def _by_data(task: str, runs: Sequence[LabRun]) -> dict[str, list[LabRun]]:
    """The runs of a task by their data: it may differ under the same options. An unfinished run does not name it."""
    parts: dict[str, list[LabRun]] = {}
    for run in runs:
        parts.setdefault(json.dumps(run.fingerprint, sort_keys=True), []).append(run)
    if sum(bool(part[0].fingerprint) for part in parts.values()) <= 1:
        return {task: list(runs)}
    return {
        f"{task}, {f'data of {part[0].name}' if part[0].fingerprint else 'data not known'}": part
        for part in parts.values()
    }


def _groups(runs: Sequence[LabRun]) -> list[Group]:
    members: dict[str, list[LabRun]] = {}
    flat: dict[str, dict[str, Any]] = {}
    for run, options in zip(runs, _settings(runs), strict=True):
        setting = json.dumps(options, sort_keys=True)
        members.setdefault(setting, []).append(run)
        flat[setting] = options
    named = {setting: name_of_model(several[0].model) for setting, several in members.items()}
    found: dict[str, Group] = {}
    for setting, several in members.items():
        alike = [flat[other] for other in flat if named[other] == named[setting]]
        name = _unused(named[setting] + _differences(flat[setting], alike), found)
        found[name] = group(name, named[setting], several)
    return in_order(found.values())


def _differences(setting: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str:
    """Its values of the options in which it differs from any of the others, as ", option=value, …"."""
    differing = {key for other in others for key in setting.keys() | other.keys() if setting.get(key) != other.get(key)}
    values = {key: setting.get(key, _NEUTRAL.get(key)) for key in sorted(differing) if key != _RUN or _RUN in setting}
    return "".join(f", {key}={_value(value)}" for key, value in values.items())


def _settings(runs: Sequence[LabRun]) -> list[dict[str, Any]]:
    """What distinguishes each run from the seeds of other groups."""
    counts = Counter(run.key for run in runs)
    # Runs with one key are not seeds of one setting: something that is not in the options differs, such as the data.
    return [{**_setting(run), **({_RUN: run.name} if counts[run.key] > 1 else {})} for run in runs]


def _setting(run: LabRun) -> dict[str, Any]:
    """The options, without those that mean what was done before they existed."""
    training = {key: value for key, value in run.training.items() if key not in _NO_DIFFERENCE}
    return {
        key: value
        for key, value in {**run.model, **training}.items()
        if value is not None and (key not in _NEUTRAL or value != _NEUTRAL[key])
    }


def _unused(name: str, names: Container[str]) -> str:
    """The name, numbered if there is one like it: texts in options may imitate each other."""
    numbered = (f"{name} ({number})" for number in count(2))
    return next(one for one in chain([name], numbered) if one not in names)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
