"""Long sequences: recompute gives the plain gradients in every layer and on every engine, and saves memory."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gatedrnn.bench.contestants import ours
from gatedrnn.bench.memory import peak
from gatedrnn.bench.work import Shape, Work
from gatedrnn.engines import resolve
from tests.conformance.cases import CELL_CASES, Case, spread

_SLOW = pytest.mark.slow  # a loop in Python, twice
_ENGINES = [
    pytest.param(case, engine, marks=() if engine == "cpu" else _SLOW, id=f"{case}-{engine}")
    for case in CELL_CASES
    for engine in ("cpu", "reference")
]


@pytest.mark.parametrize(("case", "engine"), _ENGINES)
def test_recompute_gives_the_plain_gradients_over_2000_steps(case: Case, engine: str) -> None:
    plain, thrifty = (case.layer(1, 16, engine=engine, recompute=recompute) for recompute in (False, True))
    spread(plain)
    thrifty.load_state_dict(plain.state_dict())
    torch.manual_seed(0)
    x = torch.randn(2000, 2, 1, dtype=torch.float64, requires_grad=True)
    assert resolve(engine, thrifty.first_scan(x)).name == engine

    def gradients(layer: torch.nn.Module) -> tuple[Tensor, ...]:
        output, _ = layer(x)
        return torch.autograd.grad((output**2).mean(0).sum(), [x, *layer.parameters()])

    for found, expected in zip(gradients(thrifty), gradients(plain), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10 * float(expected.abs().max()))


def test_recompute_takes_less_memory_in_the_cpu_engine() -> None:
    work = Work(Shape(10_000, 16, 1, 64), "last")
    plain, thrifty = (
        peak(ours("lstm", "fast", "cpu", tied=True, recompute=recompute), work)[0] for recompute in (False, True)
    )
    kept = 10_000 * 16 * 64 * 4  # bytes of one value for each unit and step
    assert plain - thrifty > 3 * kept  # the gates and the memory, less a root of them


@pytest.mark.slow
def test_a_training_step_over_100000_steps_takes_less_than_4_gigabytes() -> None:
    _, whole = peak(ours("lstm", "fast", "cpu", tied=True, recompute=True), Work(Shape(100_000, 16, 1, 128), "dense"))
    assert whole < 4e9
