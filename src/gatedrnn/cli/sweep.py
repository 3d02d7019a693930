"""``gatedrnn sweep LABEL``: all runs of one table or figure of the paper."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gatedrnn.cli.failure import Failure, as_option, code_of
from gatedrnn.cli.sweep_progress import shown, summary
from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, OWN, DeclaredRun, NotRunnableError
from gatedrnn.lab.experiments.launchers import Launcher, LauncherError, Local
from gatedrnn.lab.experiments.launchers.ray import Ray
from gatedrnn.lab.experiments.launchers.slurm import Slurm
from gatedrnn.lab.experiments.sweep import Sweep as Pool

# The launchers, and the options that are theirs alone.
_LAUNCHERS = {"local": (), "ray": ("address",), "slurm": ("minutes", "partition")}


@dataclass(frozen=True)
class Sweep:
    """Train all models of a table or figure of the paper: gatedrnn sweep fig:adding_mse --out DIR.

    Ctrl-C stops it at any time. Run the same command to resume; complete runs are skipped. Items with the same runs
    share them.
    """

    label: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="LABEL")]
    """Label in the paper, such as fig:adding_mse, or of an additional experiment; an unknown label lists all."""
    out: Path
    """Folder for the runs; created if it does not exist."""
    budget: str = "desk"
    """paper: the full setting; desk: a few hours on two cores, the same task made smaller; smoke: seconds."""
    launcher: str = "local"
    """local: processes of this machine; ray: a Ray cluster; slurm: jobs of SLURM. The last two need --out on storage
    that all machines share."""
    jobs: int | None = None
    """Runs at the same time. (default: local: one for each core; ray, slurm: as many as fit)"""
    threads: int | None = None
    """Cores of each run. (default: local: its share of the cores; ray, slurm: 1)"""
    address: str | None = None
    """ray: HOST:PORT of the cluster. (default: auto, the cluster that this machine belongs to)"""
    minutes: int | None = None
    """slurm: time limit of a job; an unfinished run is queued again and resumes. (default: 60)"""
    partition: str | None = None
    """slurm: partition for the jobs. (default: the cluster's)"""
    models: str | None = None
    """Only these models: names separated by commas. (default: all)"""
    seeds: str | None = None
    """Only these seeds: numbers separated by commas. (default: all)"""
    tasks: str | None = None
    """Only these tasks of a table, or grids such as tones_500: names separated by commas. (default: all)"""
    epochs: int | None = None
    """Only the first epochs of each run; a later sweep without this option extends the runs. (default: all)"""

    def run(self) -> None:
        """Train, show the progress, and list the runs that failed."""
        runs = self._chosen()
        try:
            pool = Pool(runs, self.out, self._launcher())
        except ValueError as wrong:
            raise Failure(as_option(wrong, self)) from wrong
        try:
            with shown(pool) as changed:
                pool.go(changed)
        except LauncherError as wrong:
            raise Failure(str(wrong)) from wrong
        except OSError as wrong:
            raise Failure(f"cannot write to {self.out}: {wrong}", code=code_of(wrong)) from wrong
        except KeyboardInterrupt:
            print(f"stopped: {summary(pool)}; run the same command to resume", file=sys.stderr)
            raise
        print(f"{summary(pool)}; the records are in {self.out}")
        failed = [run for run in pool.runs if run.state == "failed"]
        for run in failed:  # the reasons stand above
            print(f"failed: {run.name}", file=sys.stderr)
        if failed:
            raise Failure(
                f"{len(failed)} of {len(pool.runs)} runs failed; run the same command to try them again", code=1
            )

    def _launcher(self) -> Launcher:
        for launcher, options in _LAUNCHERS.items():
            for option in options:
                if launcher != self.launcher and getattr(self, option) is not None:
                    raise ValueError(f"{option} is for --launcher {launcher}, not for {self.launcher}")
        given = {name: getattr(self, name) for name in _LAUNCHERS.get(self.launcher, ())}
        given = {name: value for name, value in given.items() if value is not None}
        if self.launcher == "ray":
            return Ray(**given, jobs=self.jobs, threads=self.threads)
        if self.launcher == "slurm":
            return Slurm(**given, jobs=self.jobs, threads=self.threads)
        if self.launcher == "local":
            return Local(self.jobs, self.threads)
        raise ValueError(f"launcher must be one of {', '.join(_LAUNCHERS)}, got {self.launcher!r}")

    def _chosen(self) -> list[DeclaredRun]:
        experiments = {**EXPERIMENTS, **OWN}
        experiment = experiments.get(self.label)
        if experiment is None:
            raise Failure(f"LABEL must be one of {', '.join(experiments)}, got {self.label!r}")
        budget = next((name for name in BUDGETS if name == self.budget), None)
        if budget is None:
            raise Failure(f"--budget must be one of {', '.join(BUDGETS)}, got {self.budget!r}")
        try:
            every = experiment.runs(budget)
        except NotRunnableError as why:
            raise Failure(str(why)) from why
        models = _listed("--models", self.models, dict.fromkeys(run.model_name for run in every))
        seeds = _listed("--seeds", self.seeds, sorted({str(run.seed) for run in every}, key=int))
        grids = [name for grid in experiment.grids for name in (grid.task, grid.name)]
        tasks = _listed("--tasks", self.tasks, dict.fromkeys(grids))
        chosen = experiment.runs(budget, models, None if seeds is None else [int(seed) for seed in seeds], tasks)
        if not chosen:
            given = {"--models": self.models, "--seeds": self.seeds, "--tasks": self.tasks}
            asked = " ".join(f"{option} {value}" for option, value in given.items() if value is not None)
            raise Failure(f"no run of {self.label} matches {asked}")
        return chosen if self.epochs is None else [self._shortened(declared) for declared in chosen]

    def _shortened(self, declared: DeclaredRun) -> DeclaredRun:
        training = declared.run.training
        if training.epochs is None:
            raise Failure(f"--epochs is for tasks with a training set; the runs of {self.label} are counted in updates")
        if self.epochs is None or not 1 <= self.epochs <= training.epochs:
            raise Failure(f"--epochs must be between 1 and {training.epochs}, got {self.epochs}")
        run = dataclasses.replace(declared.run, training=dataclasses.replace(training, epochs=self.epochs))
        return dataclasses.replace(declared, run=run)


def _listed(option: str, text: str | None, known: Iterable[str]) -> Collection[str] | None:
    """The names in a list separated by commas; None for all."""
    if text is None:
        return None
    allowed, names = list(known), [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in allowed]
    if wrong or not names:
        raise Failure(f"{option} must be chosen from {','.join(allowed)}, got {(wrong or [text])[0]!r}")
    return names
