"""The gradient flow: closed form, both views, arrival at λ < 1, and the paper's plateau."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from gatedrnn.gates import GATES, Fast, Refine, Sigmoid
from gatedrnn.theory import Flow, ToyProblem, flow, flow_of_output


def test_sigmoid_with_an_interval_of_one_against_the_integral() -> None:
    """Δt = 1: dτ = dz/σ′(z) = (e^z + 2 + e^−z) dz, so τ = 2 sinh z + 2z."""
    tau = np.array([0.0, 1.0, 10.0, 1e3, 1e6])
    z = flow(ToyProblem(Sigmoid(), 1), tau).z[:, 0]
    np.testing.assert_allclose(2 * np.sinh(z) + 2 * z, tau, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name, gate in GATES.items() if gate.preactivations == 1])
def test_time_is_the_integral_over_the_gate(name: str, flow_of: Callable[[str], Flow]) -> None:
    """τ(z) = ∫ dz / (Δt φ^{Δt−1} φ′)."""
    gate = GATES[name]()
    found = flow_of(name)

    def pace(z: float) -> float:
        return float(1 / (10 * gate.value(z) ** 9 * gate.derivative(z)))

    for at in (20, 60, 300):
        spent, _ = quad(pace, 0.0, found.z[at, 0], epsabs=0, epsrel=1e-9, limit=200)
        assert spent == pytest.approx(found.tau[at], rel=1e-6)


@pytest.mark.parametrize("name", [name for name, gate in GATES.items() if gate.preactivations == 1])
@pytest.mark.parametrize("target", [1.0, 0.9])
def test_both_views_agree(name: str, target: float) -> None:
    problem = ToyProblem(GATES[name](), 10, target)
    tau = np.array([0.0, 30.0, 60.0, 100.0])
    in_z, in_f = flow(problem, tau), flow_of_output(problem, tau)
    np.testing.assert_allclose(in_f.log_complement, in_z.log_complement, rtol=0, atol=2e-6)


def test_refine_moves_in_both_variables(flow_of: Callable[[str], Flow]) -> None:
    """dg/dτ = Δt g^{Δt−1} ((∂g/∂z)² + (∂g/∂z̃)²) along the flow."""
    found, gate = flow_of("refine"), Refine()
    assert found.z.shape[1] == 2
    assert (np.diff(found.z, axis=0) > 0).all()
    z, z_r = torch.from_numpy(found.z).unbind(-1)
    partial, partial_r = gate.derivative(z, z_r)
    speed = (10 * gate.value(z, z_r) ** 9 * (partial**2 + partial_r**2)).numpy()
    measured = np.gradient(found.value, found.tau)
    np.testing.assert_allclose(measured[1:30], speed[1:30], rtol=2e-2)
    with pytest.raises(ValueError, match="auxiliary"):
        flow_of_output(ToyProblem(gate), found.tau)


@pytest.mark.parametrize("name", GATES)
def test_a_target_below_one_is_reached_and_kept(name: str) -> None:
    problem = ToyProblem(GATES[name](), 10, 0.5)
    found = flow(problem, np.array([0.0, 20.0, 1e3, 1e6]))
    excess = problem.excess(torch.from_numpy(found.z)).numpy()
    assert excess[1] < -0.5
    np.testing.assert_allclose(excess[2:], 0.0, atol=1e-7)
    if problem.gate.preactivations == 1:
        np.testing.assert_allclose(found.z[2:, 0], problem.solution().item(), rtol=1e-6)


def test_the_flow_comes_down_from_above_the_target() -> None:
    problem = ToyProblem(Fast(), 10, 0.5)
    found = flow(problem, [0.0, 1e6], start=torch.tensor([3.0]))
    assert found.z[1, 0] == pytest.approx(problem.solution().item(), rel=1e-6)


def test_plateau_of_about_forty_iterations(flow_of: Callable[[str], Flow]) -> None:
    for name in ("sigmoid", "fast", "softsign"):
        assert flow_of(name).value[40] < 0.62, name
    assert flow_of("fast").value[60] > 0.9998
    assert 0.95 < flow_of("sigmoid").value[60] < 0.97


@pytest.mark.parametrize("tau", [[1.0, 0.5], [-1.0, 1.0], [], [1.0, math.inf], [math.nan], [1.0, math.nan]])
def test_times_must_increase(tau: list[float]) -> None:
    with pytest.raises(ValueError, match="increasing"):
        flow(ToyProblem(Sigmoid()), tau)
