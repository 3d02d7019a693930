"""The order of saturation, the theorem's ratios, and the three properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gatedrnn.gates import GATES, Gate, Refine, Sigmoid, Softsign
from gatedrnn.theory import OneVariable, compare, gradient_ratio, log_complement_ratio, properties
from gatedrnn.theory.saturation import LEVELS

# Slowest first; a gate is of higher order than exactly those in a group before its own.
ORDER = [{"softsign"}, {"sigmoid", "refine"}, {"polynomial"}, {"fast"}, {"iterated_fast"}]


def rank(name: str) -> int:
    return next(i for i, group in enumerate(ORDER) if name in group)


def test_every_gate_has_a_place_in_the_order() -> None:
    assert set().union(*ORDER) == set(GATES)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("other", GATES)
def test_higher_order_of_saturation(name: str, other: str) -> None:
    assert compare(GATES[name](), GATES[other]()).higher_order == (rank(name) > rank(other))


def test_refine_differs_from_the_sigmoid_by_a_factor_of_z_only() -> None:
    found = compare(Refine(), Sigmoid())
    assert found.limits == {0.1: "zero", 0.5: "zero", 1.0: "zero", 2.0: "bounded", 10.0: "infinity"}
    assert found.convex


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_ratio_of_complements_in_closed_form(factor: float) -> None:
    """(1−σ(z))/(1−σ_ns(az)) = (az+2)/(1+e^z), also where it is far below the smallest float64."""
    z = torch.tensor([1.0, 50.0, 1e4], dtype=torch.float64)
    expected = torch.log(factor * z + 2) - torch.nn.functional.softplus(z)
    torch.testing.assert_close(log_complement_ratio(Sigmoid(), Softsign(), factor, z), expected, rtol=1e-12, atol=0)


CLOSED_FORMS = {  # g_φ(f) at 1−f = y, divided by y
    "sigmoid": lambda y: 1 - y,
    "softsign": lambda y: y,
    "fast": lambda y: (1 - y) * math.sqrt(1 + math.log((1 - y) / y) ** 2),
    "refine": lambda y: 2 * (1 - math.sqrt(y)),  # at r = 1: g = 1−q², ∂g/∂z = 2(1−q)q²
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_gradient_at_the_output_in_closed_form(name: str) -> None:
    found = OneVariable(GATES[name]()).log_gradient_at(torch.tensor(LEVELS, dtype=torch.float64))
    expected = [math.log(y) + math.log(CLOSED_FORMS[name](y)) for y in LEVELS]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["fast", "iterated_fast", "polynomial"])
def test_the_theorem_down_to_1e_300(name: str) -> None:
    ratio = gradient_ratio(GATES[name](), Sigmoid(), torch.tensor(LEVELS, dtype=torch.float64))
    assert (torch.diff(ratio) > 0).all()
    assert ratio[-1] > math.log(200)
    # without bound: to double the ratio again the exponent of 1−f need only grow by a fixed factor
    far = gradient_ratio(GATES[name](), Sigmoid(), torch.tensor([1e-75, 1e-300], dtype=torch.float64))
    assert far[1] - far[0] > math.log(2.4)


def test_sigmoid_against_softsign_and_refine_against_sigmoid() -> None:
    y = torch.tensor(LEVELS, dtype=torch.float64)
    torch.testing.assert_close(gradient_ratio(Sigmoid(), Softsign(), y), torch.log((1 - y) / y), rtol=1e-12, atol=0)
    bounded = torch.exp(gradient_ratio(Refine(), Sigmoid(), y))
    assert (bounded <= 2.0 + 1e-9).all()
    assert bounded[-1].item() == pytest.approx(2.0)


@pytest.mark.parametrize(("name", "other"), [("fast", "sigmoid"), ("sigmoid", "softsign"), ("iterated_fast", "fast")])
def test_convexity_by_second_differences(name: str, other: str) -> None:
    """The check of convexity goes through η′; here η = φ̃⁻¹(φ(z)) itself."""
    z = torch.linspace(1.0, 2.0, 50, dtype=torch.float64)
    eta = GATES[other]().inverse_complement(GATES[name]().complement(z))
    assert (torch.diff(eta, n=2) > 0).all()
    slope = torch.exp(gradient_ratio(GATES[name](), GATES[other](), GATES[name]().complement(z)))
    torch.testing.assert_close(torch.gradient(eta, spacing=(z,))[0][1:-1], slope[1:-1], rtol=2e-2, atol=0)


@pytest.mark.parametrize("name", GATES)
def test_the_three_properties(name: str) -> None:
    found = properties(GATES[name]())
    assert found.saturates_faster == (rank(name) > rank("sigmoid"))
    assert found.distance_at_zero < 1e-15
    assert found.asymmetry < 1e-15


def test_a_gate_of_ones_own(cubic: Gate) -> None:
    found = properties(cubic)
    assert found.saturates_faster
    assert found.asymmetry < 1e-15


def test_refine_of_one_variable_stands_at_r_one() -> None:
    one = OneVariable(Refine())
    assert one.label == "refine (r = 1)"
    z = torch.tensor([-3.0, 0.0, 2.0, 300.0], dtype=torch.float64)
    q = torch.sigmoid(-z)
    torch.testing.assert_close(one.log_complement(z), 2 * torch.log(q), rtol=1e-14, atol=0)
    torch.testing.assert_close(one.inverse_complement(q[:3] ** 2), z[:3], rtol=1e-12, atol=1e-12)
