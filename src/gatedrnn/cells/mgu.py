"""Minimal gated unit (Zhou et al., 2016), its gate written as our complement."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import AUX, FusedCell, PreActivations, State, Weights, forget, linear
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class MGUEquations(FusedCell):
    """h̃ = tanh(W x + U((1−f)∘h) + b), h = h + (1−f)∘(h̃ − h)."""

    blocks = ("f", "g")

    def prepare(self, weights: Weights) -> Weights:
        # The candidate's recurrent product needs the gate first, so its rows go by themselves.
        gate_rows, candidate_rows = weights["weight_hh"].chunk(2)
        w = {**super().prepare(weights), "candidate_hh": candidate_rows, "gate_hh": gate_rows}
        if f"weight_hh_{AUX}" in weights:
            w["gate_hh"] = torch.cat([gate_rows, weights[f"weight_hh_{AUX}"]])
        return w

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        a = self._named(x[0], state)
        gates = (name for name in a if name != "g")
        from_h = linear(state[0], w["gate_hh"]).split(state[0].shape[-1], -1)
        return {**a, **{name: a[name] + rows for name, rows in zip(gates, from_h, strict=True)}}

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        not_f = gate.complement(*forget(a))
        candidate = torch.tanh(a["g"] + linear(not_f * h, w["candidate_hh"]))
        return (h + not_f * (candidate - h),)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a))}
