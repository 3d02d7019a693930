"""The targets of the CPU engine, each measured against the peer in the same run."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gatedrnn.bench.contestants import Contestant, ours, peer
from gatedrnn.bench.measure import Ratio, Say, Timing, timed
from gatedrnn.bench.memory import peak
from gatedrnn.bench.work import PAPER, Shape, Work

SMALL, LARGE = Shape(1000, 64, 2, 128), PAPER["psmnist"]
GIGABYTE = 1e9
# Seconds for each comparison. A round at H=512 takes five, and a handful of them scatters by a quarter.
_AT_LEAST, _AT_LEAST_LARGE = 15.0, 90.0


@dataclass(frozen=True)
class Bar:
    """A measured number beside what it must be and what it should be. Lower is better unless said otherwise."""

    name: str
    measured: Ratio
    must: float
    aim: float
    unit: str = ""
    higher_is_better: bool = False

    @property
    def verdict(self) -> str:
        sign = -1 if self.higher_is_better else 1
        if sign * self.measured.median <= sign * self.aim:
            return "aim"
        return "must" if sign * self.measured.median <= sign * self.must else "missed"


class Runner:
    """Times what the bars compare and collects the times."""

    def __init__(self, rounds: int, say: Say) -> None:
        self.rounds, self.say, self.timings = rounds, say, list[Timing]()

    def time(self, *entries: tuple[Contestant, Work]) -> list[Timing]:
        at_least = _AT_LEAST_LARGE if any(work.shape == LARGE for _, work in entries) else _AT_LEAST
        timings = timed(entries, self.rounds, self.say, at_least)
        self.timings += timings
        return timings


def run_bars(rounds: int, say: Say) -> tuple[list[Bar], list[Timing]]:
    """Measure all bars; takes about a quarter of an hour."""
    measures = (_training, _gru, _variants, _long, _ragged, _inference, _threads, _memory, _recompute, _import)
    return run_measures(measures, rounds, say)


def run_measures(
    measures: Sequence[Callable[[Runner], Iterator[Bar]]], rounds: int, say: Say
) -> tuple[list[Bar], list[Timing]]:
    """The bars that the functions return, each printed as soon as it is measured."""
    runner = Runner(rounds, say)
    bars: list[Bar] = []
    for measure in measures:
        for bar in measure(runner):
            say(f"{bar.name}: {bar.measured}{bar.unit} — must {bar.must:g}, aim {bar.aim:g}: {bar.verdict}")
            bars.append(bar)
    return bars, runner.timings


def _training(runner: Runner) -> Iterator[Bar]:
    limits = {SMALL: ((0.70, 0.45), (0.45, 0.33)), LARGE: ((0.70, 0.55), (0.55, 0.42))}
    for shape, (untied_limits, tied_limits) in limits.items():
        work = Work(shape)
        nn, untied, tied = runner.time(
            (peer("lstm"), work),
            (ours("lstm", "sigmoid", "cpu"), work),
            (ours("lstm", "fast", "cpu", tied=True), work),
        )
        yield Bar(f"untied sigmoid LSTM ÷ torch.nn.LSTM, H={shape.H}", Ratio.of(untied, nn), *untied_limits)
        yield Bar(f"tied fast LSTM ÷ torch.nn.LSTM, H={shape.H}", Ratio.of(tied, nn), *tied_limits)


def _gru(runner: Runner) -> Iterator[Bar]:
    for shape, limits in {SMALL: (0.50, 0.30), LARGE: (0.50, 0.38)}.items():
        nn, gru = runner.time((peer("gru"), Work(shape)), (ours("gru", "sigmoid", "cpu"), Work(shape)))
        yield Bar(f"GRU ÷ torch.nn.GRU, H={shape.H}", Ratio.of(gru, nn), *limits)


def _variants(runner: Runner) -> Iterator[Bar]:
    dense, last = Work(SMALL), Work(SMALL, "last")
    sigmoid, fast, refine, fast_last = runner.time(
        (ours("lstm", "sigmoid", "cpu", tied=True), dense),
        (ours("lstm", "fast", "cpu", tied=True), dense),
        (ours("lstm", "refine", "cpu", tied=True), dense),
        (ours("lstm", "fast", "cpu", tied=True), last),
    )
    yield Bar("fast ÷ sigmoid, tied LSTM", Ratio.of(fast, sigmoid), 1.05, 1.02)
    yield Bar("refine ÷ fast, tied LSTM", Ratio.of(refine, fast), 1.50, 1.35)
    yield Bar("last-step loss ÷ dense gradient", Ratio.of(fast_last, fast), 1.05, 1.00)
    native, loop = runner.time(
        (ours("lstm", "fast", "cpu", tied=True), dense), (ours("lstm", "fast", "reference", tied=True), dense)
    )
    yield Bar("÷ Python loop over the reference cell, H=128", Ratio.of(native, loop), 0.15, 0.08)


def _long(runner: Runner) -> Iterator[Bar]:
    contestant = ours("lstm", "fast", "cpu", tied=True)
    short, long = runner.time((contestant, Work(Shape(500, 64, 2, 128))), (contestant, Work(Shape(16000, 64, 2, 128))))
    yield Bar("time a step at T=16000 ÷ at T=500", Ratio.of(long, short, per_useful_step=True), 1.15, 1.05)


def _ragged(runner: Runner) -> Iterator[Bar]:
    contestant, ragged = ours("lstm", "sigmoid", "cpu"), Work(SMALL, shortest=100)
    padded, lengths, packed = runner.time(
        (contestant, Work(SMALL)), (contestant, ragged), (_packed(contestant), ragged)
    )
    yield Bar("time of a valid step, lengths ÷ full batch", Ratio.of(lengths, padded, True), 1.20, 1.05)
    yield Bar("time of a valid step, packed ÷ full batch", Ratio.of(packed, padded, True), 1.20, 1.05)


def _packed(contestant: Contestant) -> Contestant:
    return Contestant(f"{contestant.name} packed", contestant.cell, contestant.options, packed=True)


def _inference(runner: Runner) -> Iterator[Bar]:
    for batch in (64, 1):
        work = Work(Shape(1000, batch, 2, 128), "none")
        nn, mine = runner.time((peer("lstm"), work), (ours("lstm", "sigmoid", "cpu"), work))
        yield Bar(f"inference ÷ torch.nn.LSTM, H=128, batch {batch}", Ratio.of(mine, nn), 1.00, 0.70)


def _threads(runner: Runner) -> Iterator[Bar]:
    for shape in (SMALL, LARGE):
        one, two = runner.time(
            (ours("lstm", "fast", "cpu", tied=True, threads=1), Work(shape)),
            (ours("lstm", "fast", "cpu", tied=True), Work(shape)),
        )
        ratio = Ratio.of(one, two)
        yield Bar(f"two threads against one, H={shape.H}", ratio, 1.7, 1.9, higher_is_better=True)


def _memory(runner: Runner) -> Iterator[Bar]:
    work = Work(PAPER["adding"])
    runner.say("peak memory at T=5000")
    mine, _ = peak(ours("lstm", "sigmoid", "cpu"), work)
    nn, _ = peak(peer("lstm"), work)
    yield Bar("peak memory ÷ torch.nn.LSTM, T=5000", _exactly(mine / nn), 0.75, 0.50)


def _recompute(runner: Runner) -> Iterator[Bar]:
    contestant = ours("lstm", "fast", "cpu", tied=True, recompute=True)
    for loss, must, aim in (("dense", 4.0, 2.5), ("last", 3.0, 1.5)):
        runner.say(f"peak memory at T=100000 with recompute, {loss}")
        _, whole = peak(contestant, Work(Shape(100_000, 16, 2, 128), loss))  # type: ignore[arg-type]
        yield Bar(f"recompute, T=100000, B=16, {loss}: whole process", _exactly(whole / GIGABYTE), must, aim, " GB")


def _import(runner: Runner) -> Iterator[Bar]:
    runner.say("time of import")
    code = "import torch, time; start = time.perf_counter(); import gatedrnn; print(time.perf_counter() - start)"
    # As after an installation: with the modules compiled, which the first of these does if nothing did before.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    _, *seconds = [
        float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
        for _ in range(6)
    ]
    yield Bar("import gatedrnn beyond import torch", _exactly(1e3 * statistics.median(seconds)), 100, 50, " ms")


def _exactly(value: float) -> Ratio:
    return Ratio(value, value, value)
