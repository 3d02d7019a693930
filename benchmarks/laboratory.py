"""What the laboratory costs beside the layers, and what running several at once gains. On a quiet machine, in minutes:

python benchmarks/laboratory.py
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import torch

from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.sweep import Sweep, cores_here
from gatedrnn.lab.models import Model, build
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Status, Training, train

TASK = Adding(500)
ROUNDS, UPDATES = 7, 20
SWEEP_UPDATES = 120


def loop_seconds(folder: Path) -> float:
    """One update of the training loop, everything but the evaluation."""
    times: list[float] = []

    def note(status: Status) -> None:
        times.append(time.perf_counter())

    train(Run(TASK, Model(), Training(updates=UPDATES + 1, evaluate_every=UPDATES + 1)), folder, note)
    updates = times[1:-1]  # the first follows the evaluation at 0, the last one comes after that at the end
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(updates))


def bare_seconds() -> float:
    """Forward and backward of the same network and nothing else."""
    network = build(Model(), TASK.input_size, TASK.output_size, TASK.last, TASK.t_max)
    x, target = TASK.batch(64, torch.Generator().manual_seed(0))
    times = []
    for _ in range(UPDATES):
        begin = time.perf_counter()
        TASK.loss(network(x), target).backward()
        times.append(time.perf_counter() - begin)
        network.zero_grad()
    return statistics.median(times)


def sweep_seconds(folder: Path, jobs: int, cores: int) -> float:
    """Four runs, `jobs` at a time, on so many cores."""
    run = Run(TASK, Model(), Training(updates=SWEEP_UPDATES, evaluate_every=SWEEP_UPDATES))
    runs = [
        DeclaredRun(
            "fast", seed, dataclasses.replace(run, training=dataclasses.replace(run.training, seed=seed)), f"seed{seed}"
        )
        for seed in range(4)
    ]
    begin = time.perf_counter()
    pool = Sweep(runs, folder, jobs=jobs, cores=cores)
    pool.go(lambda state: None)
    assert all(state.state == "finished" for state in pool.runs)
    return time.perf_counter() - begin


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ratios = [loop_seconds(folder / f"loop{i}") / bare_seconds() for i in range(ROUNDS)]
        print(f"training loop / bare layer calls, T=500: {statistics.median(ratios):.3f}", [f"{r:.3f}" for r in ratios])
        cores = cores_here()
        parallel = sweep_seconds(folder / "parallel", cores, cores)
        one = sweep_seconds(folder / "one", 1, 1)
        several = sweep_seconds(folder / "several", 1, cores)
        print(f"four runs at once: {parallel:.1f} s, {one / parallel:.2f} times as fast as one after the other with")
        print(f"one thread ({one:.1f} s), and {several / parallel:.2f} times with {cores} threads ({several:.1f} s)")


if __name__ == "__main__":
    main()
