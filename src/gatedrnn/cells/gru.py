"""Gated recurrent unit in torch's form: the reset gate acts after the matrix product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import FusedCell, PreActivations, State, Weights, forget, linear, wide
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class GRUEquations(FusedCell):
    """n = tanh(W_n x + b_n + r∘(U_n h + b′_n)), h = h + (1−f)∘(n − h). f is torch's z, the factor on the old state."""

    blocks = ("r", "f", "n")

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        rows = linear(x, w["weight_ih"])
        return (rows + wide(w["bias_ih"]) if "bias_ih" in w else rows,)

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        # b′_n belongs inside the reset, so bias_hh cannot join the projection of the input.
        rows = linear(state[0], w["weight_hh"])
        from_h = self._named(rows + wide(w["bias_hh"]) if "bias_hh" in w else rows, state)
        from_x = self._named(x[0], state)
        a = {block: from_x[block] + from_h[block] for block in from_x if block != "n"}
        return {**a, "n": from_x["n"], "n_from_h": from_h["n"]}

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        n = torch.tanh(a["n"] + torch.sigmoid(a["r"]) * a["n_from_h"])
        return (h + gate.complement(*forget(a)) * (n - h),)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a))}
