"""JANET (van der Westhuizen and Lasenby, 2018): just another network, with a forget gate only."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import FusedCell, PreActivations, State, Weights, forget, remembered
from gatedrnn.gates import Gate

#: The largest |β|. What float32 loses of 1−f and f at its smallest numbers is then still less than 1e-29 of i, and
#: i changes where the logit of the steepest gate still has its digits.
LARGEST_BETA = 20.0


@dataclass(frozen=True)
class JANETEquations(FusedCell):
    """h = f∘h + i∘h̃ with i = σ(β − logit f), for the sigmoid the authors' 1−σ(z−β). −20 ≤ β ≤ 20.

    The shift is on the logit of the gate, not on z, so that i ≤ e^β (1−f) and |h| ≤ e^β for every gate.
    """

    beta: float = 1.0
    blocks = ("f", "g")

    def __post_init__(self) -> None:
        if isinstance(self.beta, bool) or not isinstance(self.beta, numbers.Real):
            raise TypeError(f"beta should be a number, got: {type(self.beta).__name__}")
        if not abs(self.beta) <= LARGEST_BETA:  # a NaN is not
            raise ValueError(f"beta must lie between {-LARGEST_BETA:g} and {LARGEST_BETA:g}, got {self.beta}")
        object.__setattr__(self, "beta", float(self.beta))

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        f, not_f = gate.value(*forget(a)), gate.complement(*forget(a))
        return (remembered(f, not_f, h, self._input(f, not_f) * torch.tanh(a["g"])),)

    def _input(self, f: Tensor, not_f: Tensor) -> Tensor:
        return not_f / (not_f + math.exp(-self.beta) * f)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        f, not_f = gate.value(*forget(a)), gate.complement(*forget(a))
        return {"forget": f, "input": self._input(f, not_f)}
