"""The optimisers at the paper's settings."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gatedrnn.gates import GATES, Sigmoid
from gatedrnn.theory import OPTIMISERS, Flow, ToyProblem, descend, first_step_below


def steps(optimiser: str, name: str, limit: int = 450) -> int | None:
    interval = 10 if optimiser == "gradient_descent" else 30
    return first_step_below(descend(ToyProblem(GATES[name](), interval), OPTIMISERS[optimiser], limit), 1e-3)


@pytest.mark.parametrize(
    ("optimiser", "expected"),
    [
        ("rmsprop", {"fast": 73, "polynomial": 42, "iterated_fast": 29, "refine": 283}),
        ("adam", {"fast": 161, "polynomial": 119, "iterated_fast": 113, "refine": 400}),
    ],
)
def test_steps_to_one_thousandth(optimiser: str, expected: dict[str, int]) -> None:
    """Fast is first of the paper's four; iterated fast is earlier still, and so is the polynomial."""
    assert {name: steps(optimiser, name) for name in expected} == expected
    assert steps(optimiser, "sigmoid") is None
    assert steps(optimiser, "softsign") is None


def test_gradient_descent_by_hand() -> None:
    z = 0.0
    for _ in range(20):
        f = 1 / (1 + math.exp(-z))
        z += 10 * f**10 * (1 - f)
    found = descend(ToyProblem(Sigmoid()), OPTIMISERS["gradient_descent"], 20)
    assert found[0] == pytest.approx(math.log(0.5))
    assert found[20] == pytest.approx(-math.log1p(math.exp(z)), rel=1e-12)


@pytest.mark.parametrize("name", ["softsign", "sigmoid", "refine"])
def test_gradient_descent_behaves_like_the_flow(name: str, flow_of: Callable[[str], Flow]) -> None:
    found = descend(ToyProblem(GATES[name]()), OPTIMISERS["gradient_descent"], 300)
    late = slice(100, 301)
    np.testing.assert_allclose(found[late], flow_of(name).log_complement[late], atol=0.2)


def test_a_threshold_not_reached_is_none() -> None:
    assert first_step_below(np.log([0.5, 0.1, 0.01]), 0.1) == 1
    assert first_step_below(np.log([0.5, 0.1, 0.01]), 1e-3) is None
