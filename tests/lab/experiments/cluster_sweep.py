"""A sweep for the tests of launchers, as a driver that can be killed: python cluster_sweep.py LAUNCHER OUT ARGUMENT."""

from __future__ import annotations

import sys
from pathlib import Path

from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import Launcher, LauncherError, Local
from gatedrnn.lab.experiments.launchers.ray import Ray
from gatedrnn.lab.experiments.sweep import RunState, Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training

SEEDS = range(6)


def runs(updates: int = 300, steps: int = 100) -> list[DeclaredRun]:
    """Some seconds each, saved all the time."""
    options = {"updates": updates, "evaluate_every": updates // 6, "evaluation_size": 50, "batch_size": 16}
    found = []
    for seed in SEEDS:
        run = Run(Adding(steps), Model(hidden_size=32), Training(**options, seed=seed, checkpoint_seconds=0.5))
        found.append(DeclaredRun("fast", seed, run, f"adding/fast/seed{seed}"))
    return found


def main(launcher: str, out: str, argument: str) -> None:
    made: Launcher = Local(int(argument)) if launcher == "local" else Ray(argument)
    pool = Sweep(runs(), Path(out), made)

    def told(run: RunState) -> None:
        print(
            run.name, run.state, run.update, run.reason or "", flush=True, file=sys.__stdout__
        )  # Ray has the other one

    try:
        pool.go(told)
    except LauncherError as wrong:
        print(wrong, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
