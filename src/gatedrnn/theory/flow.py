"""Gradient flow of the toy problem: descent with infinitely small steps (eq:grad_flow and eq:dynamics_y)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from gatedrnn.theory.one_variable import OneVariable
from gatedrnn.theory.toy import ToyProblem

Array = NDArray[np.float64]

_RELATIVE, _ABSOLUTE = 1e-8, 1e-10  # of the solver; log(1−f) is then right to about 1e-6


@dataclass(frozen=True)
class Flow:
    """The flow at the times ``tau``: log(1−f), and the pre-activations (n, k) it was found at."""

    tau: Array
    z: Array
    log_complement: Array

    @property
    def complement(self) -> Array:
        """1−f; 0 where it is below the smallest float64."""
        return np.exp(self.log_complement)

    @property
    def value(self) -> Array:
        """f."""
        return -np.expm1(self.log_complement)


def flow(problem: ToyProblem, tau: ArrayLike, start: torch.Tensor | None = None) -> Flow:
    """Follow dz/dτ = −∂L/∂z (eq:grad_flow) from ``start`` (z = 0) at τ = 0, and return it at the times ``tau``.

    With λ < 1 the flow reaches the solution in finite time and stops, because the slope of the loss does not vanish.
    """
    z0 = problem.start() if start is None else start.double()
    side = float(torch.sign(problem.excess(z0)))

    def velocity(z: Array) -> Array:
        return -problem.gradient(torch.from_numpy(z), side).numpy()

    def remaining(_x: float, z: Array) -> float:
        return float(problem.excess(torch.from_numpy(z)))

    times = np.asarray(tau, dtype=np.float64)
    z = _integrate(velocity, remaining if problem.target < 1.0 else None, z0.numpy(), times)
    return Flow(times, z, problem.log_complement(torch.from_numpy(z)).numpy())


def flow_of_output(problem: ToyProblem, tau: ArrayLike) -> Flow:
    """The same flow followed in the output, df/dτ = −g_φ(f)² ∂L/∂f (eq:dynamics_y), for gates of one variable.

    The variable is u = log(1−f), so that du/dτ = g_φ² ∂L/∂f / (1−f) and nothing is subtracted from 1.
    """
    if problem.gate.preactivations != 1:
        raise ValueError(f"{problem.gate!r} has an auxiliary variable: its flow is not a function of the output alone")
    gate = OneVariable(problem.gate)
    u0 = problem.log_complement(problem.start()).reshape(1).numpy()
    side = float(torch.sign(problem.excess(problem.start())))

    def preactivation(u: Array) -> torch.Tensor:
        return gate.inverse_complement(torch.from_numpy(np.exp(u)))

    def velocity(u: Array) -> Array:
        z = preactivation(u)
        growth = torch.exp(2.0 * gate.log_derivative(z) - torch.from_numpy(u))
        return (growth * problem.loss_slope(z.unsqueeze(-1), side)).numpy()

    def remaining(_x: float, u: Array) -> float:
        return float(problem.excess(preactivation(u).unsqueeze(-1)))

    times = np.asarray(tau, dtype=np.float64)
    u = _integrate(velocity, remaining if problem.target < 1.0 else None, u0, times)
    return Flow(times, preactivation(u).numpy(), u[:, 0])


def _integrate(
    velocity: Callable[[Array], Array], arrival: Callable[[float, Array], float] | None, start: Array, tau: Array
) -> Array:
    """States at the times τ, integrated in x = log(1+τ): twelve decades of τ are then a few dozen units of x."""
    if tau.ndim != 1 or tau.size == 0 or not np.isfinite(tau).all() or tau[0] < 0 or bool((np.diff(tau) <= 0).any()):
        raise ValueError("the times must be finite, increasing and not negative")
    x = np.log1p(tau)

    def slope(at: float, state: Array) -> Array:
        return np.multiply(math.exp(at), velocity(state))

    events = []
    if arrival is not None:
        arrival.terminal = True  # type: ignore[attr-defined]
        events.append(arrival)
    if x[-1] == 0.0:
        return np.tile(start, (1, 1))
    solved = solve_ivp(
        slope, (0.0, x[-1]), start, "DOP853", t_eval=x, events=events or None, rtol=_RELATIVE, atol=_ABSOLUTE
    )
    if not solved.success:
        raise RuntimeError(f"the flow could not be followed: {solved.message}")
    states: Array = solved.y.T
    if solved.y_events is not None and states.shape[0] < x.size:
        rest = np.tile(solved.y_events[0][-1], (x.size - states.shape[0], 1))
        states = np.concatenate([states, rest]) if states.size else rest
    return states
