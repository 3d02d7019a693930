"""Cost of several machines, and of the whole paper. Run it on an idle machine:

python benchmarks/scale_out.py launchers    # the Ray launcher and the local pool, a quarter of an hour; extra [ray]
python benchmarks/scale_out.py launchers 1  # each once instead of twice
python benchmarks/scale_out.py paper        # core hours of the whole paper, from a few updates of each of its models
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from gatedrnn.lab.experiments import EXPERIMENTS, DeclaredRun, NotRunnableError
from gatedrnn.lab.experiments.launchers import Launcher, Local, cores_here
from gatedrnn.lab.experiments.launchers.ray import Ray
from gatedrnn.lab.experiments.sweep import Sweep
from gatedrnn.lab.models import Model, Sizes
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Run, Training

SECONDS = 65.0  # of a run
TRAINING_IMAGES = {"smnist": 54_000, "psmnist": 54_000, "scifar": 45_000}
# Official sizes, so that no data is needed: words of the vocabulary, chunks of an epoch, clips for training.
WORDS, CHUNKS, CLIPS = 10_000, 681, 26_982


def sweep_seconds(launcher: Launcher, folder: Path, updates: int, count: int) -> float:
    """Runs of the same length, from the start of the sweep to its end."""
    run = Run(Adding(500), Model(), Training(updates=updates, evaluate_every=updates))
    runs = [
        DeclaredRun(
            "fast", seed, dataclasses.replace(run, training=dataclasses.replace(run.training, seed=seed)), f"{seed}"
        )
        for seed in range(count)
    ]
    begin = time.perf_counter()
    pool = Sweep(runs, folder, launcher)
    pool.go(lambda state: None)
    assert all(state.state == "finished" for state in pool.runs), [state.reason for state in pool.runs]
    return time.perf_counter() - begin


def launchers(turns: int = 2) -> None:
    """Runs of a minute, two on each core, by the local pool and by Ray, alternating.

    The start of the cluster is not counted; the start of Ray's processes on its nodes is.
    """
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")
    from ray.cluster_utils import Cluster

    cores = cores_here()
    node = {"include_dashboard": False, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 0})
    try:
        cluster.add_node(**node, num_cpus=cores)
        makers: dict[str, Callable[[], Launcher]] = {"local": lambda: Local(cores), "ray": lambda: Ray(cluster.address)}
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            trial = 400  # long enough for the start of the processes not to count
            updates = int(trial * SECONDS / sweep_seconds(Local(cores), folder / "trial", trial, cores))
            found: dict[str, list[float]] = {"local": [], "ray": []}
            for turn in range(turns):
                for name in found:
                    found[name].append(sweep_seconds(makers[name](), folder / f"{name}{turn}", updates, 2 * cores))
        ratio = statistics.median(found["local"]) / statistics.median(found["ray"])
        print(
            f"throughput, ray / local: {ratio:.3f}",
            {name: [f"{s:.1f} s" for s in times] for name, times in found.items()},
        )
    finally:
        cluster.shutdown()


def update_seconds(run: Run) -> float:
    """One update on one core, forward and backward; the values do not matter.

    It is timed over a tenth of the steps, at least 70, and by the processor's clock: other programs slow it less.
    """
    task, words = run.task, run.task.tokens
    ends = (WORDS, WORDS) if words else (task.input_size, task.output_size)
    network = run.model.build(Sizes(*ends, task.last, 784.0))
    steps = max(70, task.steps // 10)
    shape = (steps, run.training.batch_size)
    x = torch.randint(WORDS, shape) if words else torch.randn(*shape, task.input_size)
    times = []
    for _ in range(3):  # the first one allocates memory
        begin = time.process_time()
        network(x).output.square().mean().backward()
        times.append(time.process_time() - begin)
    return statistics.median(times) * task.steps / steps


def updates_of(run: Run) -> int:
    training, name = run.training, run.task.name
    if training.updates is not None:
        return training.updates
    assert training.epochs is not None
    samples = TRAINING_IMAGES.get(name, CLIPS)
    return training.epochs * (CHUNKS if run.task.tokens else -(-samples // training.batch_size))


def paper() -> None:
    """Core hours by task and size, evaluations and early stops left out."""
    torch.set_num_threads(1)
    seen: dict[str, DeclaredRun] = {}
    for experiment in EXPERIMENTS.values():
        try:
            seen |= {declared.folder: declared for declared in experiment.runs("paper")}
        except NotRunnableError:
            continue
    hours: dict[tuple[str, int], list[float]] = {}
    seconds: dict[object, float] = {}
    for run in (declared.run for declared in seen.values()):
        shape = (run.task.steps, run.training.batch_size, repr(run.model))
        if shape not in seconds:
            seconds[shape] = update_seconds(run)
            print(f"{seconds[shape]:.2f} s per update: {run.task.name}, {run.model}", file=sys.stderr, flush=True)
        hidden = getattr(run.model, "hidden_size")  # noqa: B009 - of every model there is, of no interface
        hours.setdefault((run.task.name, hidden), []).append(seconds[shape] * updates_of(run) / 3600)
    print("| task | units | runs | core hours | longest run, hours |\n| --- | --- | --- | --- | --- |")
    for (task, hidden), each in hours.items():
        print(f"| {task} | {hidden} | {len(each)} | {sum(each):,.0f} | {max(each):,.0f} |", flush=True)
    every = [one for each in hours.values() for one in each]
    print(f"| all | | {len(every)} | {sum(every):,.0f} | {max(every):,.0f} |")


if __name__ == "__main__":
    {"launchers": launchers, "paper": paper}[sys.argv[1]](*map(int, sys.argv[2:]))
