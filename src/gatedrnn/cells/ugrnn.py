"""Update gate RNN (Collins, Sohl-Dickstein and Sussillo, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import FusedCell, PreActivations, State, Weights, forget
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class UGRNNEquations(FusedCell):
    """h = h + (1−f)∘(tanh(g) − h)."""

    blocks = ("f", "g")

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        return (h + gate.complement(*forget(a)) * (torch.tanh(a["g"]) - h),)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a))}
