"""Side-by-side suites: the paper's shapes, and sweeps over T, B and H."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gatedrnn.bench.contestants import Contestant, ours, peer, torchrecurrent
from gatedrnn.bench.measure import Say, Timing, timed
from gatedrnn.bench.memory import peak
from gatedrnn.bench.work import PAPER, Loss, Shape, Work

#: The Python loop takes minutes on large shapes; it is left out from this many multiplications per block on.
LOOP_LIMIT = 5000 * 64 * 128 * 128
#: One step of training takes half a minute there; only the first contestants are timed.
LARGE = 16000 * 50 * 256 * 256


_LOSSES: tuple[Loss, ...] = ("dense", "last", "none")


def field(loop: bool) -> list[Contestant]:
    """The contestants of the side-by-side suites."""
    entries = [
        peer("lstm"),
        peer("lstm", flush_denormal=False),
        ours("lstm", "sigmoid", "cpu"),
        ours("lstm", "fast", "cpu"),
        ours("lstm", "fast", "cpu", tied=True),
        ours("lstm", "refine", "cpu", tied=True),
        peer("gru"),
        ours("gru", "sigmoid", "cpu"),
        ours("gru", "fast", "cpu"),
        ours("janet", "fast", "cpu"),
    ]
    if loop:
        entries.append(ours("lstm", "fast", "reference", tied=True))
        entries.append(ours("janet", "sigmoid", "cpu"))
        if (other := torchrecurrent("janet")) is not None:
            entries.append(other)
    return entries


#: What is measured of one shape: times, and peak memory.
Measured = tuple[list[Timing], list[dict[str, object]]]


def paper(rounds: int, say: Say, names: Sequence[str] = tuple(PAPER)) -> Iterator[Measured]:
    """The paper's shapes, one after the other: training with dense and last-step loss, inference, peak memory."""
    first = [peer("lstm"), ours("lstm", "sigmoid", "cpu"), ours("lstm", "fast", "cpu", tied=True)]
    for name in names:
        shape = PAPER[name]
        say(f"{name}: {shape}")
        size = shape.T * shape.B * shape.H**2
        entries = first if size >= LARGE else field(loop=size < LOOP_LIMIT)
        timings, memory = [], []
        for loss in _LOSSES:
            timings += timed([(c, Work(shape, loss)) for c in entries], rounds, say)
        for contestant in first:
            step, whole = peak(contestant, Work(shape))
            memory.append({"contestant": contestant.name, "shape": str(shape), "step": step, "process": whole})
        yield timings, memory


def sweep(rounds: int, say: Say) -> Iterator[Measured]:
    """One size at a time away from 1000×64×2×128."""
    centre = Shape(1000, 64, 2, 128)
    shapes = [replace(centre, T=T) for T in (100, 1000, 4000)]
    shapes += [replace(centre, T=300, B=B) for B in (1, 4, 16, 64, 256)]
    shapes += [replace(centre, T=300, H=H) for H in (32, 64, 128, 256, 512, 1024)]
    return _side_by_side(shapes, ("dense", "none"), rounds, say)


def quick(rounds: int, say: Say) -> Iterator[Measured]:
    """Seconds; shows that everything works."""
    return _side_by_side([Shape(50, 8, 2, 16)], _LOSSES, rounds, say)


def _side_by_side(shapes: Sequence[Shape], losses: Sequence[Loss], rounds: int, say: Say) -> Iterator[Measured]:
    entries = [peer("lstm"), ours("lstm", "sigmoid", "cpu"), ours("lstm", "fast", "cpu", tied=True)]
    entries += [peer("gru"), ours("gru", "fast", "cpu")]
    for shape in shapes:
        timings = []
        for loss in losses:
            timings += timed([(contestant, Work(shape, loss)) for contestant in entries], rounds, say)
        yield timings, []
