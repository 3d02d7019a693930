"""The benchmark: what it times is right, what it prints is what it measured."""

from __future__ import annotations

import json
from dataclasses import astuple, replace

import pytest
import torch
from torch import nn

from gatedrnn import LSTM, explain
from gatedrnn.bench import bars, engine, suites
from gatedrnn.bench.bars import Bar, Runner
from gatedrnn.bench.check import WrongResultError, check
from gatedrnn.bench.contestants import Contestant, ours, peer
from gatedrnn.bench.measure import Ratio, Timing, timed
from gatedrnn.bench.memory import peak
from gatedrnn.bench.report import markdown, write
from gatedrnn.bench.user_gates import USER_GATES
from gatedrnn.bench.work import Data, Shape, Work, step
from gatedrnn.gates import check_gate

SHAPE = Shape(12, 6, 2, 5)


def silent(line: str) -> None:
    pass


def timing(name: str, *seconds: float, steps: int = 10, useful: int = 10) -> Timing:
    return Timing(name, "shape", "dense", 0.0, useful, steps, seconds)


@pytest.mark.parametrize("loss", ["dense", "last", "none"])
def test_right_results_pass(loss: str) -> None:
    work = Work(SHAPE, loss)
    for contestant in suites.field(loop=True):
        assert 0 < check(contestant, work) < 1e-4, contestant.name


class Wrong(Contestant):
    """An LSTM whose forget bias is off by a thousandth in the layer, not in the truth."""

    def run(self, layer: nn.Module, data: Data) -> torch.Tensor:
        with torch.no_grad():
            layer.bias_ih_l0 += 1e-3
        result = super().run(layer, data)
        with torch.no_grad():
            layer.bias_ih_l0 -= 1e-3
        return result


def test_no_speed_for_a_wrong_result() -> None:
    good = ours("lstm", "fast", "reference")
    wrong = Wrong(good.name, good.cell, good.options)
    with pytest.raises(WrongResultError, match="output is off by .* the benchmark was stopped"):
        timed([(good, Work(SHAPE)), (wrong, Work(SHAPE))], 1, silent)


def test_ragged_work_is_the_same_padded_and_packed() -> None:
    work = Work(SHAPE, shortest=3)
    assert work.lengths().tolist() == [12, 10, 8, 7, 5, 3]
    assert work.useful_steps() == 45
    padded = ours("lstm", "sigmoid", "cpu")
    packed = replace(padded, packed=True)
    check(padded, work)
    check(packed, work)
    check(peer("lstm", packed=True), work)
    layers = [contestant.build(SHAPE) for contestant in (padded, packed)]
    for contestant, layer in zip((padded, packed), layers, strict=True):
        contestant.run(layer, contestant.prepare(Data.draw(work)))
    for a, b in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_the_settings_of_the_process_come_back() -> None:
    before = torch.get_num_threads()
    contestant = peer("gru")
    contestant.run(contestant.build(SHAPE), Data.draw(Work(SHAPE)))
    assert torch.get_num_threads() == before
    tiny = torch.tensor(1e-40)
    assert tiny * 1.0 != 0, "denormals are kept again"


def test_a_step_is_forward_and_backward_of_its_loss() -> None:
    layer = peer("lstm").build(SHAPE)
    data = Data.draw(Work(SHAPE, "last"))
    output = step(layer, data)
    found = layer.weight_hh_l0.grad.clone()
    layer.zero_grad()
    (layer(data.input)[0][-1] * data.gradient[0]).sum().backward()
    assert torch.equal(found, layer.weight_hh_l0.grad)
    assert torch.equal(output, layer(data.input)[0])


def test_ratios_are_taken_within_a_round() -> None:
    slow, fast = timing("slow", 2.0, 4.0, 9.0), timing("fast", 1.0, 1.0, 3.0)
    ratio = Ratio.of(slow, fast)
    assert (ratio.median, ratio.low, ratio.high) == (3.0, 2.0, 4.0)
    half = replace(slow, useful_steps=5)
    assert Ratio.of(half, fast, per_useful_step=True).median == 6.0
    assert slow.microseconds_a_step() == pytest.approx(4e5)


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.4, "aim"), (0.5, "aim"), (0.6, "must"), (0.7, "must"), (0.71, "missed")]
)
def test_verdicts(value: float, verdict: str) -> None:
    ratio = Ratio(value, value, value)
    assert Bar("what", ratio, 0.7, 0.5).verdict == verdict
    upside_down = Ratio(1 - value, 1 - value, 1 - value)
    assert Bar("what", upside_down, 0.3, 0.5, higher_is_better=True).verdict == verdict


def test_the_quick_suite_and_its_files(tmp_path) -> None:
    timings = [timing for times, _ in suites.quick(1, silent) for timing in times]
    a_bar = [Bar("a bar", Ratio(0.5, 0.4, 0.6), 0.7, 0.5)]
    write(tmp_path, "quick", a_bar, timings, [])
    record = json.loads((tmp_path / "bench.json").read_text())
    assert [t["seconds"] for t in record["timings"]] == [list(t.seconds) for t in timings]
    assert record["bars"][0]["verdict"] == "aim" and record["machine"]["torch"] == torch.__version__
    text = (tmp_path / "bench.md").read_text()
    assert text == markdown(a_bar, timings) and "| a bar | 0.500 (0.400 … 0.600) | ≤ 0.7 | ≤ 0.5 | aim |" in text
    assert {path.name for path in tmp_path.iterdir()} == {"bench.json", "bench.md", "bench.png", "bench.svg"}


class Small(Runner):
    """Every comparison at a tenth of its size or less, once."""

    def time(self, *entries: tuple[Contestant, Work]) -> list[Timing]:
        small = [
            (contestant, replace(work, shape=Shape(*(min(size, 6) for size in astuple(work.shape))), repeats=2))
            for contestant, work in entries
        ]
        return timed(small, 1, silent)


def test_the_bars_of_the_engine_compare_right_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the suite times is checked before, so that nothing is raised says that all contestants agree."""
    monkeypatch.setattr(bars, "Runner", Small)
    measured, _ = engine.run_engine(1, silent)
    assert len({bar.name for bar in measured}) == len(measured) == 19
    assert all(bar.aim < bar.must and bar.measured.median > 0 for bar in measured)


def test_the_gates_of_the_benchmark_are_gates_that_run_natively() -> None:
    for gate in USER_GATES:
        if not gate.name.startswith("where"):  # it has a kink, where no derivative is right
            check_gate(gate)
        assert "as a native program" in explain(LSTM(2, 3, forget_gate=gate), torch.zeros(1, 1, 2)), gate.name


def test_a_time_is_that_of_one_repetition() -> None:
    (once,) = timed([(ours("lstm"), Work(SHAPE, "none"))], 5, silent)
    (often,) = timed([(ours("lstm"), Work(SHAPE, "none", repeats=100))], 5, silent)
    assert often.median < 20 * once.median


def test_peak_memory_is_that_of_the_step() -> None:
    shape = Shape(400, 32, 2, 64)
    step_bytes, whole = peak(ours("lstm", "fast", "cpu", tied=True), Work(shape))
    kept = shape.T * shape.B * shape.H * 4 * 4  # f, g, o, c in float32
    assert kept < step_bytes < 3 * kept
    assert whole > step_bytes


def test_short_work_gets_more_rounds_until_the_time_is_spent() -> None:
    entries = [(ours("lstm", "fast", "cpu"), Work(Shape(2, 1, 1, 2)))]
    assert len(timed(entries, 3, silent)[0].seconds) == 3
    more = timed(entries, 3, silent, at_least=0.1)[0].seconds
    assert len(more) > 3
    assert sum(more[:-1]) < 0.1
