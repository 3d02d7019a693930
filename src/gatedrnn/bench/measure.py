"""Timing: contestants are timed in turn, so that a disturbance affects all; ratios are of the same round."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from gatedrnn.bench.check import check
from gatedrnn.bench.contestants import Contestant
from gatedrnn.bench.work import Data, Work

Say = Callable[[str], None]


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant in each round, and what they mean."""

    contestant: str
    shape: str
    loss: str
    error: float
    useful_steps: int
    steps: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def microseconds_a_step(self) -> float:
        return 1e6 * self.median / self.steps

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "median": self.median, "microseconds_a_step": self.microseconds_a_step()}


@dataclass(frozen=True)
class Ratio:
    """Our time divided by the peer's: the median of the rounds and their interquartile range."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Timing, peer: Timing, per_useful_step: bool = False) -> Ratio:
        scale = peer.useful_steps / ours.useful_steps if per_useful_step else 1.0
        rounds = sorted(scale * a / b for a, b in zip(ours.seconds, peer.seconds, strict=True))
        quarter = len(rounds) // 4
        return cls(statistics.median(rounds), rounds[quarter], rounds[-1 - quarter])

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} … {self.high:.3f})"


def timed(entries: Sequence[tuple[Contestant, Work]], rounds: int, say: Say, at_least: float = 0.0) -> list[Timing]:
    """Check each contestant, warm it up, then time all of them in turn, so many rounds.

    ``at_least`` so many seconds are spent on it: short work gets more rounds, because its times scatter more.
    """
    prepared = []
    for contestant, work in entries:
        say(f"checking {contestant.name} at {work.shape}, {work.loss}")
        error = check(contestant, work)
        layer, data = contestant.build(work.shape), contestant.prepare(Data.draw(work))
        contestant.run(layer, data)
        prepared.append((contestant, work, layer, data, error))
    seconds: list[list[float]] = [[] for _ in prepared]
    begin = time.perf_counter()
    for turn in itertools.count():
        if turn >= rounds and time.perf_counter() - begin >= at_least:
            break
        say(f"round {turn + 1} of {rounds} or more: {', '.join(entry[0].name for entry in prepared)}")
        # A different order each round, so that no contestant always runs after the same one.
        for place in random.Random(turn).sample(range(len(prepared)), len(prepared)):
            record, (contestant, _, layer, data, _) = seconds[place], prepared[place]
            start = time.perf_counter()
            contestant.run(layer, data)
            record.append((time.perf_counter() - start) / data.work.repeats)
    return [
        Timing(c.name, str(w.shape), w.loss, error, w.useful_steps(), w.shape.T, tuple(record))
        for record, (c, w, _, _, error) in zip(seconds, prepared, strict=True)
    ]
