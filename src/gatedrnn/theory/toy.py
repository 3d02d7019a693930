"""The toy problem of learning one long time scale (eq:toy-problem)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gatedrnn.gates import Gate


@dataclass(frozen=True)
class ToyProblem:
    """Minimise L(z) = |φ(z)^Δt − λ|: after Δt steps the memory should still hold the part λ of what it held.

    A pre-activation vector ``z`` is a float64 tensor (..., k), k being the gate's number of pre-activations. For a
    gate with an auxiliary one (refine) all of them move, with g in place of f.
    """

    gate: Gate
    #: Δt = t1 − t0
    interval: int = 10
    #: λ, in (0, 1]
    target: float = 1.0

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"the interval Δt must be at least 1, got {self.interval}")
        if not 0.0 < self.target <= 1.0:
            raise ValueError(f"the target λ must lie in (0, 1], got {self.target}")

    def start(self) -> Tensor:
        """z = 0 for every variable, where φ = ½."""
        return torch.zeros(self.gate.preactivations, dtype=torch.float64)

    def solution(self) -> Tensor:
        """z = φ⁻¹(λ^{1/Δt}); with an auxiliary variable, the solution that the gate's inverse picks."""
        if self.target == 1.0:
            return torch.full((self.gate.preactivations,), math.inf, dtype=torch.float64)
        y = torch.tensor(-math.expm1(math.log(self.target) / self.interval), dtype=torch.float64)
        roots: Any = self.gate.inverse_complement(y)
        return torch.stack(roots if isinstance(roots, tuple) else (roots,))

    def log_complement(self, z: Tensor) -> Tensor:
        """log(1−f)."""
        return self.gate.log_complement(*z.unbind(-1))

    def excess(self, z: Tensor) -> Tensor:
        """log f^Δt − log λ: negative below the solution, positive above it."""
        return self.interval * self.gate.log_value(*z.unbind(-1)) - math.log(self.target)

    def loss(self, z: Tensor) -> Tensor:
        """L(z), through expm1, so that it keeps its digits close to the solution."""
        return self.target * torch.expm1(self.excess(z)).abs()

    def loss_slope(self, z: Tensor, side: float | None = None) -> Tensor:
        """∂L/∂f = ±Δt f^{Δt−1}. ``side`` fixes the sign: −1 for the branch f^Δt < λ, +1 for the other."""
        if side is None and self.target == 1.0:
            side = -1.0  # nothing is above λ = 1
        sign = torch.sign(self.excess(z)) if side is None else side
        return sign * self.interval * torch.exp((self.interval - 1) * self.gate.log_value(*z.unbind(-1)))

    def gradient(self, z: Tensor, side: float | None = None) -> Tensor:
        """∂L/∂z = ∂L/∂f · φ′(z), one entry per pre-activation."""
        slopes: Any = self.gate.derivative(*z.unbind(-1))
        stacked = torch.stack(slopes if isinstance(slopes, tuple) else (slopes,), dim=-1)
        return self.loss_slope(z, side).unsqueeze(-1) * stacked
