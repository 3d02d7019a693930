"""The engine's other targets: custom gates, every cell, hard and small shapes, single steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gatedrnn.bench.bars import LARGE, Bar, Runner, run_measures
from gatedrnn.bench.contestants import Contestant, ours, peer
from gatedrnn.bench.measure import Ratio, Say, Timing
from gatedrnn.bench.user_gates import CUBIC, USER_GATES, UserGate
from gatedrnn.bench.work import PAPER, Shape, Work
from gatedrnn.gates import Polynomial

MIDDLE = Work(Shape(500, 64, 2, 128))


def run_engine(rounds: int, say: Say) -> tuple[list[Bar], list[Timing]]:
    """Measure them; takes about ten minutes."""
    return run_measures((_user_gates, _cells, _hard, _gru, _small, _one_step, _single_steps), rounds, say)


def _user_gates(runner: Runner) -> Iterator[Bar]:
    polynomial = ours("lstm", Polynomial((1 / 3,)), "cpu", tied=True)
    built_in, cubic = runner.time((polynomial, MIDDLE), (_tied(CUBIC), MIDDLE))
    yield Bar("user gate z + z³/3 ÷ built-in polynomial, tied LSTM", Ratio.of(cubic, built_in), 1.15, 1.05)
    fast, *others = runner.time(
        (ours("lstm", "fast", "cpu", tied=True), MIDDLE),
        *((_tied(gate), MIDDLE) for gate in USER_GATES),
    )
    ratios = {gate.name: Ratio.of(timing, fast) for gate, timing in zip(USER_GATES, others, strict=True)}
    slowest = max(ratios, key=lambda name: ratios[name].median)
    yield Bar(f"slowest of ten user gates ({slowest}) ÷ fast, tied LSTM", ratios[slowest], 1.35, 1.20)


def _tied(gate: UserGate) -> Contestant:
    return replace(ours("lstm", gate, "cpu", tied=True), name=f"gatedrnn lstm {gate.name} tied cpu")


def _cells(runner: Runner) -> Iterator[Bar]:
    for cell in ("nru", "ugrnn", "minimal_rnn", "fastgrnn", "mgu"):
        native, loop = runner.time((_cell(cell, "cpu"), MIDDLE), (_cell(cell, "reference"), MIDDLE))
        yield Bar(f"{cell} ÷ Python loop", Ratio.of(native, loop), 0.15, 0.10)


def _cell(cell: str, engine: str) -> Contestant:
    if cell != "nru":
        return ours(cell, "fast", engine)
    # Its memory grows in proportion to itself, and rounding errors with it: only a short scan can be compared.
    return Contestant(f"gatedrnn nru {engine}", cell, {"engine": engine}, checked_steps=20)


def _hard(runner: Runner) -> Iterator[Bar]:
    work = Work(PAPER["ptb"])
    nn, mine = runner.time((peer("lstm"), work), (ours("lstm", "sigmoid", "cpu"), work))
    yield Bar(f"untied sigmoid LSTM {work.shape} ÷ torch.nn.LSTM", Ratio.of(mine, nn), 0.85, 0.70)


def _gru(runner: Runner) -> Iterator[Bar]:
    nn, mine = runner.time((peer("gru"), Work(LARGE)), (ours("gru", "sigmoid", "cpu"), Work(LARGE)))
    yield Bar(f"GRU ÷ torch.nn.GRU, H={LARGE.H}, T={LARGE.T}", Ratio.of(mine, nn), 0.50, 0.38)
    short = Work(replace(LARGE, T=200))  # no bar: torch.nn's time depends on what the process did before
    nn, mine = runner.time((peer("gru"), short), (ours("gru", "sigmoid", "cpu"), short))
    runner.say(f"GRU ÷ torch.nn.GRU, H={LARGE.H}, T=200: {Ratio.of(mine, nn)}")


def _small(runner: Runner) -> Iterator[Bar]:
    small, medium = Work(Shape(20, 8, 32, 32), repeats=50), Work(Shape(35, 20, 200, 200), repeats=3)
    for work, layers, must, aim in ((small, 1, 1.0, 0.7), (medium, 2, 0.9, 0.75)):
        nn, mine = runner.time(
            (replace(peer("lstm"), layers=layers), work),
            (replace(ours("lstm", "sigmoid", "cpu"), layers=layers), work),
        )
        name = f"untied sigmoid LSTM {work.shape}, layers: {layers}, ÷ torch.nn.LSTM"
        yield Bar(name, Ratio.of(mine, nn), must, aim)


def _one_step(runner: Runner) -> Iterator[Bar]:
    for hidden in (64, 256):
        work = Work(Shape(1, 1, hidden, hidden), "none", repeats=200)
        for cell in ("lstm", "gru"):
            nn, mine = runner.time((peer(cell), work), (ours(cell, "sigmoid", "cpu"), work))
            yield Bar(f"{cell} layer, T=1, B=1, H={hidden}, inference ÷ torch.nn", Ratio.of(mine, nn), 1.0, 0.6)


def _single_steps(runner: Runner) -> Iterator[Bar]:
    for batch in (1, 64):
        step = Work(Shape(1, batch, 128, 128), "none", repeats=200)
        chain = Work(Shape(20, batch, 128, 128), repeats=10)
        for work, what, must, aim in ((step, "inference", 1.0, 0.7), (chain, "training, 20 steps", 1.5, 1.0)):
            nn, mine = runner.time(
                (replace(peer("lstm"), name="torch.nn LSTMCell flush", single=True), work),
                (Contestant("gatedrnn LSTMCell", "lstm", {"forget_gate": "sigmoid"}, single=True), work),
            )
            yield Bar(f"LSTMCell, B={batch}, {what} ÷ torch.nn.LSTMCell", Ratio.of(mine, nn), must, aim)
