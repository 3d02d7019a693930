"""``gatedrnn sweep LABEL``: all runs of one table or figure of the paper."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.sweep_progress import shown, summary
from gatedrnn.lab.experiments import BUDGETS, EXPERIMENTS, OWN, DeclaredRun, NotRunnableError
from gatedrnn.lab.experiments.launchers import Local
from gatedrnn.lab.experiments.sweep import Sweep as Pool


@dataclass(frozen=True)
class Sweep:
    """Train all models of a table or figure of the paper: gatedrnn sweep fig:adding_mse --out DIR.

    Ctrl-C stops it at any time; the same command skips the complete runs and resumes the others. Items that show the
    same runs share them.
    """

    label: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="LABEL")]
    """The paper's label, such as fig:adding_mse, or that of an experiment of our own; for an unknown one all are
    listed."""
    out: Path
    """Folder for the runs; made if it does not exist."""
    budget: str = "desk"
    """paper: the full setting; desk: a few hours on two cores, the same task made smaller; smoke: seconds."""
    jobs: int | None = None
    """Runs at the same time, each with its share of the cores. (default: one for each core)"""
    models: str | None = None
    """Some models only: names separated by commas. (default: all)"""
    seeds: str | None = None
    """Some seeds only: numbers separated by commas. (default: all)"""
    tasks: str | None = None
    """Some tasks of a table only: names separated by commas. (default: all)"""
    epochs: int | None = None
    """Only the first epochs of each run; a later sweep without this option extends the runs. (default: all)"""

    def run(self) -> None:
        """Train, show the progress, and list the runs that failed."""
        runs = self._chosen()
        try:
            pool = Pool(runs, self.out, Local(self.jobs))
        except ValueError as wrong:
            text = str(wrong)
            raise Failure(f"--{text}" if text.startswith("jobs ") else text) from wrong
        try:
            with shown(pool) as changed:
                pool.go(changed)
        except OSError as wrong:
            raise Failure(f"cannot write to {self.out}: {wrong}") from wrong
        except KeyboardInterrupt:
            print(f"stopped: {summary(pool)}; run the same command to resume", file=sys.stderr)
            raise
        print(f"{summary(pool)}; the records are in {self.out}")
        failed = [run for run in pool.runs if run.state == "failed"]
        for run in failed:
            log = f" (see {run.job.log})" if run.job.log.exists() else ""
            print(f"failed: {run.name}: {run.reason}{log}", file=sys.stderr)
        if failed:
            raise Failure(
                f"{len(failed)} of {len(pool.runs)} runs failed; run the same command to try them again", code=1
            )

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
        tasks = _listed("--tasks", self.tasks, dict.fromkeys(run.run.task.name for run in every))
        chosen = experiment.runs(budget, models, None if seeds is None else [int(seed) for seed in seeds], tasks)
        if not chosen:
            raise Failure(f"no run of --models {self.models} has one of --seeds {self.seeds}")
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
        raise Failure(f"{option} must be some of {','.join(allowed)}, got {(wrong or [text])[0]!r}")
    return names
