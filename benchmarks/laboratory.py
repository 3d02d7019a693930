"""Overhead of the laboratory over the layers, and gain of parallel runs. Takes minutes; run it on an idle machine:

python benchmarks/laboratory.py
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
import tempfile
import time
from pathlib import Path

from gatedrnn.lab.data import MissingDataError
from gatedrnn.lab.experiments import DeclaredRun
from gatedrnn.lab.experiments.launchers import Local, cores_here
from gatedrnn.lab.experiments.sweep import Sweep
from gatedrnn.lab.models import Model, Sizes
from gatedrnn.lab.tasks import Adding, PermutedMNIST, Task
from gatedrnn.lab.training import Run, Status, Training, train

TASK = Adding(500)
IMAGES = PermutedMNIST()
GATES = ("sigmoid", "fast", "refine")
ROUNDS, UPDATES = 7, 20
SWEEP_UPDATES = 120


def loop_seconds(task: Task, batch_size: int, folder: Path, gate: str = "fast") -> float:
    """One update of the training loop, everything but the evaluation."""
    times: list[float] = []

    def note(status: Status) -> None:
        times.append(time.perf_counter())

    training = Training(batch_size=batch_size, updates=UPDATES + 1, evaluate_every=UPDATES + 1)
    train(Run(task, Model(forget_gate=gate), training), folder, note)
    updates = times[1:-1]  # the first follows the evaluation at 0, the last one comes after that at the end
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(updates))


def bare_seconds(task: Task, batch_size: int) -> float:
    """Forward and backward of the same network and nothing else."""
    network = Model().build(Sizes(task.input_size, task.output_size, task.last, task.t_max))
    batch = task.stream(batch_size, 0).next()
    times = []
    for _ in range(UPDATES):
        begin = time.perf_counter()
        task.loss(network(batch.input).output, batch.target).backward()
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
    pool = Sweep(runs, folder, Local(jobs=jobs, cores=cores))
    pool.go(lambda state: None)
    assert all(state.state == "finished" for state in pool.runs)
    return time.perf_counter() - begin


def images(folder: Path) -> None:
    """The small classifier on psMNIST: the loop compared with bare calls, and the gates with each other."""
    ratios = [loop_seconds(IMAGES, 100, folder / f"images{i}") / bare_seconds(IMAGES, 100) for i in range(ROUNDS)]
    print(f"training loop / bare layer calls, psMNIST: {statistics.median(ratios):.3f}", [f"{r:.3f}" for r in ratios])
    rounds = [
        {gate: loop_seconds(IMAGES, 100, folder / f"{gate}{i}", gate) for gate in random.sample(GATES, len(GATES))}
        for i in range(ROUNDS)
    ]
    for one, other in (("fast", "sigmoid"), ("refine", "fast")):
        shares = [found[one] / found[other] for found in rounds]
        print(
            f"an update with {one} / with {other}, psMNIST: {statistics.median(shares):.3f}",
            [f"{r:.3f}" for r in shares],
        )
    seconds = {gate: 540 * statistics.median(found[gate] for found in rounds) for gate in GATES}
    print("an epoch of 540 updates:", ", ".join(f"{gate} {value:.0f} s" for gate, value in seconds.items()))


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ratios = [loop_seconds(TASK, 64, folder / f"loop{i}") / bare_seconds(TASK, 64) for i in range(ROUNDS)]
        print(f"training loop / bare layer calls, T=500: {statistics.median(ratios):.3f}", [f"{r:.3f}" for r in ratios])
        try:
            images(folder)
        except MissingDataError:
            print("psMNIST: not measured, data set not found; run gatedrnn data fetch mnist")
        cores = cores_here()
        parallel = sweep_seconds(folder / "parallel", cores, cores)
        one = sweep_seconds(folder / "one", 1, 1)
        several = sweep_seconds(folder / "several", 1, cores)
        print(f"four runs in parallel: {parallel:.1f} s; speedup over one at a time: {one / parallel:.2f} with one")
        print(f"thread ({one:.1f} s), {several / parallel:.2f} with {cores} threads ({several:.1f} s)")


if __name__ == "__main__":
    main()
