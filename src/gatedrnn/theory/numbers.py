"""Every number of the theory's figures and table, for a list of gates, as one plain dictionary."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gatedrnn.gates import Gate, Sigmoid, name_of
from gatedrnn.theory.descent import OPTIMISERS, descend, first_step_below
from gatedrnn.theory.flow import Flow, flow
from gatedrnn.theory.initial import uniform_time_scales
from gatedrnn.theory.one_variable import OneVariable
from gatedrnn.theory.rates import Fit, exponent, fit, law_of
from gatedrnn.theory.saturation import LEVELS, Tail, compare_tails, properties, tail
from gatedrnn.theory.toy import ToyProblem

Array = NDArray[np.float64]
Progress = Callable[[str], None]

SCHEMA_VERSION = 1
INTERVAL = 10  # Δt of fig:demo
INTERVAL_OTHER = 30  # Δt of fig:demo_other
DRAWN_TAU = 300  # what fig:demo shows of the flow and of gradient descent
DRAWN_WINDOW = (150.0, 300.0)  # past the plateau: where the dashed lines of fig:demo are fitted
WINDOW = (1e6, 1e9)  # where exponents are measured and the laws fitted
LAST_TAU = 1e12
STEPS_OTHER = 450
THRESHOLD = 1e-3

NULL_MEANS = {
    "curves": "the number does not exist, or is no finite float64 (a law before it begins, a gate that has reached 1)",
    "exponents, fits": "the flow has no finite log(1−f) on the window, or the gate has no law there",
    "first_step_below": f"not reached within {STEPS_OTHER} steps ({DRAWN_TAU} of gradient descent)",
    "theorem": "the ratio is not a finite float64; its log10 is given too",
}


def collect(gates: Sequence[Gate], progress: Progress) -> dict[str, Any]:
    """Compute everything. ``progress`` is called with a line of text before each piece of work; see :func:`pieces`."""
    names = [name_of(gate) for gate in gates]
    flows: dict[str, Flow] = {}
    numbers: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "settings": _settings(),
        "null_means": NULL_MEANS,
        "gates": {name_of(gate): _description(gate) for gate in gates},
    }
    progress("the gates and their gradients")
    numbers["fig:saturation"] = _saturation(gates)
    numbers["fig:gates_gradient"] = _gates_gradient(gates)
    progress("order of saturation of every pair")
    numbers["theorem"] = _theorem(gates)
    tails = {name_of(gate): tail(gate) for gate in gates}
    numbers["orders"] = {f"{a}/{b}": _order(tails[a], tails[b]) for a in tails for b in tails if a != b}
    numbers["uniform_initialisation"] = uniform_time_scales(gates)
    numbers["properties"] = {name_of(gate): vars(properties(gate)) for gate in gates}

    descents: dict[str, dict[str, Array]] = {name: {} for name in OPTIMISERS}
    for name, gate in zip(names, gates, strict=True):
        progress(f"{name}: gradient flow")
        flows[name] = flow(ToyProblem(gate, INTERVAL), _times())
        for optimiser, make in OPTIMISERS.items():
            progress(f"{name}: {optimiser.replace('_', ' ')}")
            plain = optimiser == "gradient_descent"
            problem = ToyProblem(gate, INTERVAL if plain else INTERVAL_OTHER)
            descents[optimiser][name] = descend(problem, make, DRAWN_TAU if plain else STEPS_OTHER)

    exponents = {name: exponent(*_inside(flows[name], WINDOW)) for name in names}
    fits = {name: _fit(gate, flows[name], WINDOW, exponents[name]) for name, gate in zip(names, gates, strict=True)}
    drawn = {
        name: _fit(gate, flows[name], DRAWN_WINDOW, exponents[name]) for name, gate in zip(names, gates, strict=True)
    }
    numbers["exponents"] = exponents
    numbers["fits"] = {name: _fit_numbers(fits[name]) for name in names}
    numbers["fits_drawn"] = {name: _fit_numbers(drawn[name]) for name in names}
    numbers["fig:demo"] = _demo(flows, descents["gradient_descent"], drawn, fits)
    numbers["fig:demo_other"] = {
        "step": list(range(STEPS_OTHER + 1)),
        **{o: {n: np.exp(y).tolist() for n, y in descents[o].items()} for o in ("rmsprop", "adam")},
    }
    numbers["tau_times_complement"] = {name: _decades(flows[name]) for name in names}
    numbers["first_step_below"] = {
        optimiser: {name: first_step_below(y, THRESHOLD) for name, y in by_gate.items()}
        for optimiser, by_gate in descents.items()
    }
    return numbers


def pieces(gates: Sequence[Gate]) -> int:
    """How many times :func:`collect` calls its ``progress``."""
    return 2 + len(gates) * (1 + len(OPTIMISERS))


def _settings() -> dict[str, Any]:
    return {
        "start": "z = 0 for every variable",
        "target": 1.0,
        "interval": {"fig:demo": INTERVAL, "fig:demo_other": INTERVAL_OTHER},
        "learning_rate": {"gradient_descent": 1.0, "rmsprop": 0.01, "adam": 0.01},
        "window": list(WINDOW),
        "window_drawn": list(DRAWN_WINDOW),
        "threshold": THRESHOLD,
        "one_variable": "where a figure or theorem knows one variable only, the auxiliary one is at +inf (r = 1)",
        "complement": "curves named complement are 1-f; where a figure shows f it shows 1 minus these",
    }


def _description(gate: Gate) -> dict[str, Any]:
    return {
        "repr": repr(gate),
        "saturation": getattr(gate, "saturation", "not stated"),
        "preactivations": gate.preactivations,
        "label_of_one_variable": OneVariable(gate).label,
    }


def _saturation(gates: Sequence[Gate]) -> dict[str, Any]:
    z = torch.linspace(-6.0, 6.0, 241, dtype=torch.float64)
    curves = {}
    for gate in gates:
        one = OneVariable(gate)
        curves[name_of(gate)] = {"value": one.value(z).tolist(), "derivative": one.derivative(z).tolist()}
    return {"z": z.tolist(), "curves": curves}


def _gates_gradient(gates: Sequence[Gate]) -> dict[str, Any]:
    """g_φ(f) over (0, 1), and its ratio to the sigmoid's towards f = 1."""
    f = torch.linspace(0.0, 1.0, 201, dtype=torch.float64)[1:-1]
    y = torch.logspace(-1, -300, 300, dtype=torch.float64)
    reference = OneVariable(Sigmoid()).log_gradient_at(y)
    curves = {}
    for gate in gates:
        gradient = torch.exp(OneVariable(gate).log_gradient_at(1.0 - f))
        ratio = (OneVariable(gate).log_gradient_at(y) - reference) / math.log(10.0)
        curves[name_of(gate)] = {"gradient": gradient.tolist(), "log10_ratio_to_sigmoid": ratio.tolist()}
    return {"f": f.tolist(), "complement": y.tolist(), "curves": curves}


def _theorem(gates: Sequence[Gate]) -> dict[str, Any]:
    y = torch.tensor(LEVELS, dtype=torch.float64)
    gradients = {name_of(gate): OneVariable(gate).log_gradient_at(y) / math.log(10.0) for gate in gates}
    log10 = {f"{a}/{b}": (gradients[a] - gradients[b]).tolist() for a in gradients for b in gradients if a != b}
    ratios = {pair: [10.0**x if abs(x) < 307 else None for x in values] for pair, values in log10.items()}
    return {"complement": list(LEVELS), "ratios": ratios, "log10_ratios": log10}


def _order(gate: Tail, other: Tail) -> dict[str, Any]:
    found = compare_tails(gate, other)
    limits = {f"{a:g}": limit for a, limit in found.limits.items()}
    return {"limits": limits, "convex": found.convex, "higher_order": found.higher_order}


def _times() -> Array:
    """Evenly in τ as far as fig:demo goes, then evenly in log τ, with every power of ten among them."""
    decades = np.arange(1, 10 * 20 + 1) / 20 + 2.0
    late = 10.0**decades
    return np.concatenate([np.arange(DRAWN_TAU + 1.0), late[late > DRAWN_TAU]])


def _inside(found: Flow, window: tuple[float, float]) -> tuple[Array, Array]:
    inside = (found.tau >= window[0] * (1 - 1e-9)) & (found.tau <= window[1] * (1 + 1e-9))
    return found.tau[inside], found.log_complement[inside]


def _fit(gate: Gate, found: Flow, window: tuple[float, float], measured: float) -> Fit | None:
    if not math.isfinite(measured):
        return None
    try:
        return fit(law_of(gate, measured), *_inside(found, window))
    except ValueError:
        return None  # the flow has not entered the range of the law: NULL_MEANS says so


def _fit_numbers(found: Fit | None) -> dict[str, Any] | None:
    if found is None:
        return None
    limit = None if found.law.constant is None else found.law.constant * INTERVAL
    return {
        "law": found.law.formula,
        "C": found.constant,
        "C_in_the_limit": limit,
        "shift": found.shift,
        "largest_relative_deviation": found.deviation,
    }


def _demo(
    flows: dict[str, Flow], descents: dict[str, Array], drawn: dict[str, Fit | None], fits: dict[str, Fit | None]
) -> dict[str, Any]:
    tau = next(iter(flows.values())).tau
    early, late = tau <= DRAWN_TAU, tau >= 1.0

    def law(found: Fit | None, where: NDArray[np.bool_], begin: float = 0.0) -> list[float | None]:
        if found is None:
            return [None] * int(where.sum())
        # Before its window the fitted shift of the long law says nothing.
        return list(np.where(tau[where] >= begin, np.exp(found.log_complement(tau[where])), np.nan).tolist())

    return {
        "tau": tau[early].tolist(),
        "step": list(range(DRAWN_TAU + 1)),
        "curves": {
            name: {
                "complement": found.complement[early].tolist(),
                "gradient_descent_complement": np.exp(descents[name]).tolist(),
                "law_complement": law(drawn[name], early),
            }
            for name, found in flows.items()
        },
        "long": {
            "tau": tau[late].tolist(),
            "curves": {
                name: {
                    "complement": found.complement[late].tolist(),
                    "law_complement": law(fits[name], late, WINDOW[0]),
                }
                for name, found in flows.items()
            },
        },
    }


def _decades(found: Flow) -> dict[str, float]:
    """τ(1−f) at τ = 1e3 … 1e12."""
    powers = range(3, 13)
    at = [int(np.argmin(np.abs(found.tau / 10.0**p - 1.0))) for p in powers]
    return {f"1e{p}": float(found.tau[i] * found.complement[i]) for p, i in zip(powers, at, strict=True)}
