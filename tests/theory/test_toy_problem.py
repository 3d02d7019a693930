"""The toy problem: loss, gradient and solution, for every gate."""

from __future__ import annotations

import math

import pytest
import torch

from gatedrnn.gates import GATES, Sigmoid
from gatedrnn.theory import ToyProblem


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("target", [1.0, 0.9])
def test_the_gradient_is_that_of_the_loss(name: str, target: float) -> None:
    problem = ToyProblem(GATES[name](), 10, target)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        z = torch.rand(problem.gate.preactivations, generator=generator, dtype=torch.float64) * 1.5 - 0.5
        z.requires_grad_()
        (expected,) = torch.autograd.grad((problem.gate.value(*z.unbind(-1)) ** 10 - target).abs(), z)
        torch.testing.assert_close(problem.gradient(z.detach()), expected, rtol=1e-9, atol=0)


def test_loss_and_gradient_of_the_sigmoid_by_hand() -> None:
    z = torch.tensor([2.0], dtype=torch.float64)
    f = 1 / (1 + math.exp(-2))
    problem = ToyProblem(Sigmoid(), 10)
    assert problem.loss(z).item() == pytest.approx(1 - f**10, rel=1e-14)
    assert problem.gradient(z).item() == pytest.approx(-10 * f**9 * f * (1 - f), rel=1e-13)


def test_loss_keeps_its_digits_where_f_rounds_to_one() -> None:
    z = torch.tensor([60.0], dtype=torch.float64)
    assert ToyProblem(Sigmoid(), 10).loss(z).item() == pytest.approx(10 * math.exp(-60), rel=1e-12)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("target", [0.5, 0.99, 1 - 1e-9])
def test_the_solution_holds_the_target(name: str, target: float) -> None:
    problem = ToyProblem(GATES[name](), 30, target)
    z = problem.solution()
    assert problem.gate.value(*z).item() ** 30 == pytest.approx(target, rel=1e-12)
    assert problem.loss(z).item() < 1e-13


def test_the_solution_for_a_full_memory_is_at_infinity() -> None:
    assert ToyProblem(Sigmoid()).solution().tolist() == [math.inf]


@pytest.mark.parametrize(("interval", "target"), [(0, 1.0), (10, 0.0), (10, 1.5), (10, math.nan)])
def test_senseless_settings_are_refused(interval: int, target: float) -> None:
    with pytest.raises(ValueError, match="must"):
        ToyProblem(Sigmoid(), interval, target)
