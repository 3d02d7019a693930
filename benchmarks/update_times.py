"""Measures the time of one update of each model, for charts against time. Run it on an idle machine:

python benchmarks/update_times.py --out results

It builds the declared runs (task, model, training options) and runs their updates, without evaluations. The models of a
setting are timed in turn, so that a disturbance affects all of them. Each setting is written as soon as it is measured;
other settings in the file are kept.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gatedrnn.files import check_folder
from gatedrnn.lab.analysis import middle_of
from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, DeclaredRun, Grid
from gatedrnn.lab.experiments.base import declared_runs
from gatedrnn.lab.records import SCHEMA, UPDATE_TIMES_FILE, UPDATE_TIMES_KIND, check_schema, read_json, write_json
from gatedrnn.lab.training import Run
from gatedrnn.lab.training.environment import environment
from gatedrnn.lab.training.timing import Updates

GRIDS: dict[str, Grid] = {grid.name: grid for experiment in EXPERIMENTS.values() for grid in experiment.grids}
RATIOS = ("sigmoid", "refine", "fast")
#: What is measured by default: grid/budget, and of which models; None for all models of the grid.
SETTINGS: dict[str, tuple[str, ...] | None] = {
    "adding/paper": None,
    "adding/desk": None,
    "copy/paper": None,
    "copy/desk": None,
    "small_psmnist/paper": None,
    "large_psmnist/paper": (*RATIOS, "iterated_fast"),
    "large_psmnist/desk": None,
    "ptb/paper": RATIOS,
    "ptb/desk": RATIOS,
}
TURN = 0.5  # seconds
#: What must be the same for two times to be compared.
MACHINE = ("processor", "cores", "instruction_set", "torch", "gatedrnn")


def measured(setting: str, models: Sequence[str] | None, rounds: int, turn: float = TURN) -> list[dict[str, Any]]:
    """The entries of one setting. The order of the models differs in each round."""
    timers: dict[str, tuple[DeclaredRun, Updates]] = {}
    for declared in chosen(setting, models):
        timers[declared.model_name] = declared, Updates(declared.run)
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    for number in range(rounds):
        for name in random.Random(number).sample(list(timers), len(timers)):
            seconds[name].append(float(f"{timers[name][1].turn(turn):.6g}"))
        print(f"{setting}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    found = []
    for name, (declared, updates) in timers.items():
        entry = {
            **(declared.says or {}),
            "key": declared.run.key(),
            "engine": updates.engine,
            "threads": torch.get_num_threads(),
            "batch_size": declared.run.training.batch_size,
            "seconds": middle_of(seconds[name])._asdict(),
            "rounds": seconds[name],
        }
        found.append(entry)
        for same in with_the_same_update(setting, declared):
            found.append({**entry, **(same.says or {}), "key": same.run.key(), "measured_as": setting})
    return found


def with_the_same_update(setting: str, declared: DeclaredRun) -> list[DeclaredRun]:
    """The runs of other budgets that differ only in length: their updates are the same."""
    grid, _, budget = setting.partition("/")
    found = [
        run
        for other in BUDGETS
        if other != budget
        for run in declared_runs(GRIDS[grid], other)
        if run.model_name == declared.model_name and run.seed == 0
    ]
    return [other for other in found if _of_an_update(other.run) == _of_an_update(declared.run)]


def _of_an_update(run: Run) -> tuple[Any, ...]:
    """What the time of an update depends on."""
    training = run.training
    return run.task, run.model, training.optimizer, training.batch_size, training.clip, training.weight_decay


def chosen(setting: str, models: Sequence[str] | None) -> list[DeclaredRun]:
    """The first seed of each model (None: of all models); ValueError for a setting or a model that is not declared."""
    grid, _, budget = setting.partition("/")
    if grid not in GRIDS or budget not in BUDGETS:
        raise ValueError(f"unknown setting {setting!r}; settings are GRID/BUDGET, of {', '.join(GRIDS)} and {BUDGETS}")
    found: dict[str, DeclaredRun] = {}
    for declared in declared_runs(GRIDS[grid], budget):  # type: ignore[arg-type]
        found.setdefault(declared.model_name, declared)
    if models is None:
        return list(found.values())
    unknown = [name for name in models if name not in found]
    if unknown:
        raise ValueError(f"{setting} has no model {unknown[0]!r}; it has {', '.join(found)}")
    return [found[name] for name in models]


def before(path: Path, machine: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of the file; ValueError if they are from another machine or version."""
    if not path.exists():
        return []
    record = read_json(path)
    check_schema(record, UPDATE_TIMES_KIND, path)
    other = [name for name in MACHINE if record["machine"].get(name) != machine[name]]
    if other:
        raise ValueError(f"{path} was measured with a different {', '.join(other)}; delete it or choose another folder")
    entries: list[dict[str, Any]] = record["updates"]
    return entries


def merged(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new entries, and those old ones whose setting was not measured again."""
    again = {(entry["grid"], entry["budget"]) for entry in new}
    return [*(entry for entry in old if (entry["grid"], entry["budget"]) not in again), *new]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help=f"folder of the runs; {UPDATE_TIMES_FILE} goes there")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), help="GRID/BUDGET (default: %(default)s)")
    parser.add_argument("--models", nargs="+", help="default: the models of the figures and ratios")
    parser.add_argument("--rounds", type=int, default=9, help="default: 9")
    parser.add_argument("--threads", type=int, default=1, help="default: 1, as in the runs of a sweep")
    parser.add_argument("--turn", type=float, default=TURN, help="seconds per model and round (default: 0.5)")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    place = environment("")
    machine = {name: place[name] for name in (*MACHINE, "python", "system")}
    path = given.out / UPDATE_TIMES_FILE
    try:
        check_folder(given.out)
        entries = before(path, machine)
        plan = {setting: given.models or SETTINGS.get(setting, RATIOS) for setting in given.settings}
        for setting, models in plan.items():
            chosen(setting, models)
        given.out.mkdir(parents=True, exist_ok=True)
        for setting, models in plan.items():
            entries = merged(entries, measured(setting, models, given.rounds, given.turn))
            record = {"schema": SCHEMA, "kind": UPDATE_TIMES_KIND, "machine": machine, "updates": entries}
            write_json(path, record)
    except (ValueError, OSError) as wrong:
        sys.exit(f"error: {wrong}")
    print(f"written: {path} ({os.path.getsize(path)} bytes)")


if __name__ == "__main__":
    main()
