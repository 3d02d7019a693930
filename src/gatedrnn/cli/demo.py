"""``gatedrnn demo``: the main job in one command."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gatedrnn.cli.failure import Failure, code_of
from gatedrnn.cli.progress import shown
from gatedrnn.cli.sweep_progress import shown as shown_sweep
from gatedrnn.cli.theory import regenerate
from gatedrnn.lab.experiments import Budget, runs_of
from gatedrnn.lab.experiments.demo import GUESSING, NATIVE, REFERENCE
from gatedrnn.lab.experiments.launchers import Local, cores_here
from gatedrnn.lab.experiments.sweep import Sweep
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import read_run
from gatedrnn.layers import explain

_MOST_CORES = 2  # one for each gate: more threads would not help a layer this small


@dataclass(frozen=True)
class Demo:
    """Show what the library does in three minutes: the figures of the theory, and training with two gates.

    If it is interrupted, run the same command to resume.
    """

    out: Path
    """Folder for the results; created if it does not exist."""

    def run(self) -> None:
        """Write the results, print the paths and a summary."""
        regenerate(self.out, None)
        print("the figures:")
        for figure in sorted(self.out.glob("fig_*.png")):
            print(f"  {figure}")
        budget, why = _setting()
        print(f"adding the two marked numbers of a sequence, sigmoid against fast gate: {budget.note}{why}", flush=True)
        found = _train(budget, self.out / "runs")
        print(f"report: {_report(self.out / 'runs', self.out / 'report')}")
        print(learned(budget, found["sigmoid"], found["fast"]))


def learned(budget: Budget, sigmoid: list[dict[str, Any]], fast: list[dict[str, Any]]) -> str:
    """What the metrics of the two runs show at the last evaluation that both have."""
    at = max({line["update"] for line in sigmoid} & {line["update"] for line in fast})
    ours, theirs = (_error_at(at, metrics) for metrics in (fast, sigmoid))
    if ours is None or theirs is None:
        name = "fast" if ours is None else "sigmoid"
        return f"After {at} updates the {name} gate diverged: these runs do not show which gate learns sooner."
    if ours > theirs / 2:
        compared = f", the sigmoid gate of {theirs:.3f}: these runs do not show the effect."
    elif theirs > 0.9 * GUESSING:
        compared = f"; the sigmoid gate is still at {theirs:.3f}, the level of guessing ({GUESSING:.3f})."
    else:
        compared = f", the sigmoid gate of {theirs:.3f}; guessing would give {GUESSING:.3f}."
    steps = budget.task.steps
    return f"After {at} updates on sequences of {steps} steps the fast gate has an MSE of {ours:.3f}{compared}"


def _error_at(update: int, metrics: list[dict[str, Any]]) -> float | None:
    """None if it was not finite."""
    error: float | None = next(line["mse"] for line in metrics if line["update"] == update)
    return error


def _setting() -> tuple[Budget, str]:
    """What is trained on this machine, and the reason if it is the smaller setting."""
    task, model = NATIVE.task, NATIVE.models[0].model
    assert isinstance(model, Model)
    layer = model.layer(task.input_size, task.t_max)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the missing engine is reported below
        try:
            engine, *others = explain(layer, torch.zeros(2, 1, task.input_size)).splitlines()
        except RuntimeError as wrong:  # an invalid setting of the engine
            raise Failure(str(wrong)) from wrong
    if engine.startswith("cpu:"):
        return NATIVE, ""
    reason = next(line.removeprefix("not cpu: ") for line in others if line.startswith("not cpu: "))
    return REFERENCE, f"\n(instead of T={task.steps}, because the CPU engine is not available: {reason})"


def _train(budget: Budget, out: Path) -> dict[str, list[dict[str, Any]]]:
    """Train both, in parallel if there are two cores; their metrics by the name of the gate."""
    runs = runs_of(budget, f"adding_{budget.task.steps}")
    cores = min(_MOST_CORES, cores_here())
    try:
        sweep = Sweep(runs, out, Local(jobs=cores, cores=cores))
        with shown_sweep(sweep) as changed:
            sweep.go(changed)
    except (ValueError, OSError) as wrong:
        raise Failure(str(wrong), code=code_of(wrong)) from wrong
    except KeyboardInterrupt:
        print("stopped; run the same command to resume", file=sys.stderr)
        raise
    for run in sweep.runs:
        if run.state == "failed":
            raise Failure(f"{run.name} failed: {run.reason}; run the same command to try again", code=1)
    return {run.model_name: read_run(out / run.folder).metrics for run in runs}


def _report(runs: Path, out: Path) -> Path:
    from gatedrnn.lab.report import PAGE, make_report  # here, not above: --help should not wait for it

    try:
        with shown() as progress:
            found = make_report(runs, out, progress)
    except (ValueError, OSError) as wrong:
        raise Failure(str(wrong), code=code_of(wrong)) from wrong
    for text in found:
        print(f"warning: {text}", file=sys.stderr)
    return out / PAGE
