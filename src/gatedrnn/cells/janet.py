"""JANET (van der Westhuizen and Lasenby, 2018): just another network, with a forget gate only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import FusedCell, PreActivations, State, Weights, forget
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class JANET(FusedCell):
    """h = f∘h + i∘h̃ with i = σ(β − logit f), for the sigmoid the authors' 1−σ(z−β).

    The shift is on the logit of the gate, not on z, so that i ≤ e^β (1−f) and |h| ≤ e^β for every gate.
    """

    beta: float = 1.0
    blocks = ("f", "g")

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        not_f = gate.complement(*forget(a))
        return (h + (self._input(gate, a) * torch.tanh(a["g"]) - not_f * h),)

    def _input(self, gate: Gate, a: PreActivations) -> Tensor:
        f, not_f = gate.value(*forget(a)), gate.complement(*forget(a))
        return not_f / (not_f + math.exp(-self.beta) * f)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a)), "input": self._input(gate, a)}
