"""Rates of the flow: exponents, the fitted laws, Lambert's branch, and the bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gatedrnn.gates import GATES, Gate, Polynomial
from gatedrnn.theory import Flow, ToyProblem, bounds, exponent, fit, law_of, solve_fast_law

FlowOf = Callable[[str], Flow]


def window(found: Flow, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    inside = (found.tau > low * 0.999) & (found.tau < high * 1.001)
    assert inside.sum() > 10
    return found.tau[inside], found.log_complement[inside]


@pytest.mark.parametrize(
    ("name", "expected", "tolerance"), [("sigmoid", -1, 0.03), ("refine", -1, 0.03), ("softsign", -1 / 3, 0.01)]
)
@pytest.mark.parametrize("decades", [(1e6, 1e9), (1e9, 1e12)])
def test_exponents(name: str, expected: float, tolerance: float, decades: tuple[float, float], flow_of: FlowOf) -> None:
    assert exponent(*window(flow_of(name), *decades)) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("name", "constant", "tolerance", "deviation"),
    [
        ("sigmoid", 10.0, 1e-4, 1e-5),
        ("softsign", 30.0, 0.02, 0.01),
        ("refine", 20.0, 0.01, 1e-3),
        ("fast", 10.0 * (1 - 2 / 24), 0.02, 0.03),  # C = Δt(1 + 2/log y), log y ≈ −24 at τ = 1e8.5
    ],
)
def test_constants_of_the_laws(name: str, constant: float, tolerance: float, deviation: float, flow_of: FlowOf) -> None:
    fitted = fit(law_of(GATES[name](), -1.0), *window(flow_of(name), 1e6, 1e9))
    assert fitted.constant == pytest.approx(constant, rel=tolerance)
    assert fitted.deviation < deviation


@pytest.mark.parametrize("name", ["fast", "iterated_fast", "polynomial"])
def test_time_times_complement_falls_at_each_decade(name: str, flow_of: FlowOf) -> None:
    at = [int(np.argmin(abs(np.log10(np.maximum(flow_of(name).tau, 1)) - p))) for p in range(3, 13)]
    products = {n: flow_of(n).tau[at] * flow_of(n).complement[at] for n in (name, "sigmoid", "refine")}
    assert (np.diff(products[name]) < 0).all()
    assert (products[name] < products["sigmoid"]).all()
    assert (products[name] < products["refine"]).all()


def test_lambert_branch() -> None:
    clock = np.logspace(1, 300, 100)
    y = solve_fast_law(clock)
    np.testing.assert_allclose(y * np.log(y) ** 2 * clock, 1.0, rtol=1e-10)
    assert (y < np.exp(-2.0)).all()
    assert y[-1] == pytest.approx(1 / (clock[-1] * np.log(clock[-1]) ** 2), rel=0.05)  # ≈ 1/(Cτ log²τ)
    assert np.isnan(solve_fast_law([1.0])).all()  # before the law begins, at clock = e²/4


def test_the_general_law_of_any_gate_inverts_and_fits(cubic: Gate) -> None:
    for gate in (Polynomial(), cubic):
        law = law_of(gate, -1.0)
        log_y = np.linspace(-600.0, law.ceiling - 1.0, 50)
        np.testing.assert_allclose(law.inverse(law.log_clock(log_y)), log_y, rtol=1e-8)


def test_the_general_law_fits_the_polynomial(flow_of: FlowOf) -> None:
    fitted = fit(law_of(Polynomial(), -1.0), *window(flow_of("polynomial"), 1e6, 1e9))
    assert fitted.deviation < 0.01
    assert 9.0 < fitted.constant < 10.0  # Δt, approached as 1/log y


def test_a_fit_recovers_what_was_put_in() -> None:
    law = law_of(GATES["softsign"](), -1.0)
    tau = np.logspace(3, 6, 40)
    fitted = fit(law, tau, -np.log(7.0 * (tau + 50.0)) / 3)
    assert fitted.constant == pytest.approx(7.0, rel=1e-9)
    assert fitted.shift == pytest.approx(50.0, rel=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "softsign", "refine", "fast"])
def test_the_flow_stays_within_the_bounds(name: str, flow_of: FlowOf) -> None:
    found = flow_of(name)
    begin = 150
    limits = bounds(ToyProblem(GATES[name]()), found.tau[begin], torch.from_numpy(found.z[begin]))
    late = slice(begin, None)
    log_y = found.log_complement[late]
    assert (limits.upper(found.tau[late]) >= log_y - 1e-5).all()
    assert (limits.lower(found.tau[late]) <= log_y + 1e-5).all()
    # and they are of the same order: their ratio stays below a constant
    assert (limits.upper(found.tau[late]) - limits.lower(found.tau[late])).max() < np.log(20.0)


def test_bounds_are_refused_where_none_are_derived(flow_of: FlowOf) -> None:
    z = torch.tensor([3.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="no bounds"):
        bounds(ToyProblem(Polynomial()), 0.0, z)
    with pytest.raises(ValueError, match="λ = 1"):
        bounds(ToyProblem(GATES["sigmoid"](), 10, 0.9), 0.0, z)
