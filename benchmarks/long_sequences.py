"""Time and memory of a training step on long sequences, with and without recompute. Takes minutes, on an idle machine:

python benchmarks/long_sequences.py
"""

from __future__ import annotations

import time

import torch

from gatedrnn.bench.contestants import Contestant, ours
from gatedrnn.bench.memory import peak
from gatedrnn.bench.work import PAPER, Data, Shape, Work
from gatedrnn.lab.analysis import middle_of

ROUNDS = 5
LENGTHS = (1_000, 4_000, 16_000, 64_000)
SHAPES = [Shape(T, 16, 1, 128) for T in LENGTHS] + [Shape(100_000, 16, 1, 128), PAPER["speech"]]
LAYERS = {
    recompute: ours("lstm", "fast", "cpu", tied=True, recompute=recompute)  # the paper's layer
    for recompute in (False, True)
}


def seconds(contestants: list[Contestant], work: Work) -> list[list[float]]:
    """The time of a step of each in every round; they take turns."""
    data = Data.draw(work)
    layers = [contestant.build(work.shape) for contestant in contestants]
    times: list[list[float]] = [[] for _ in contestants]
    for turn in range(ROUNDS + 1):
        for own, contestant, layer in zip(times, contestants, layers, strict=True):
            begin = time.perf_counter()
            contestant.run(layer, data)
            if turn:  # the first makes the buffers
                own.append(time.perf_counter() - begin)
    return times


def main() -> None:
    print(f"{torch.get_num_threads()} threads; memory is the peak of the whole process, including torch itself")
    print(f"Times: median of {ROUNDS} rounds; ratio: median within a round (interquartile range).\n")
    print("| T×B×I×H | time | memory | time, recompute | memory, recompute | time with recompute ÷ without |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in SHAPES:
        work = Work(shape, "last")
        times = seconds(list(LAYERS.values()), work)
        cells = [
            f"{middle_of(own).median:.2f} s | {peak(contestant, work)[1] / 1e9:.2f} GB"
            for own, contestant in zip(times, LAYERS.values(), strict=True)
        ]
        ratio = middle_of([recompute / plain for plain, recompute in zip(*times, strict=True)])
        cells.append(f"{ratio.median:.2f} ({ratio.low:.2f} … {ratio.high:.2f})")
        print(f"| {shape} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
