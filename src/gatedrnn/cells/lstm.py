"""Long short-term memory, with an input gate of its own or tied to the forget gate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import FusedCell, PreActivations, State, Weights, forget, linear, remembered
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class LSTMEquations(FusedCell):
    r"""c = f∘c + i∘c̃, h = o∘tanh(c), written with the complement 1−f; tied: i = 1−f.

    ``proj_size`` > 0 projects h to that size, h = W_hr (o∘tanh(c)).
    """

    tied: bool = False
    proj_size: int = 0
    states = ("h", "c")

    def row_blocks(self) -> tuple[str, ...]:
        return ("f", "g", "o") if self.tied else ("i", "f", "g", "o")

    def state_sizes(self, hidden_size: int) -> tuple[int, ...]:
        return self.proj_size or hidden_size, hidden_size

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        shapes = super().parameter_shapes(input_size, hidden_size, bias, False)
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, hidden_size)
        return {**shapes, **super().parameter_shapes(input_size, hidden_size, bias, aux)}

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        _, c = state
        z = forget(a)
        not_f = gate.complement(*z)
        candidate, o = torch.tanh(a["g"]), torch.sigmoid(a["o"])
        if self.tied:
            c = c + not_f * (candidate - c)
        else:
            c = remembered(gate.value(*z), not_f, c, torch.sigmoid(a["i"]) * candidate)
        h = o * torch.tanh(c)
        if self.proj_size:
            h = linear(h, w["weight_hr"])
        return h, c

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        z = forget(a)
        return {
            "forget": gate.value(*z),
            "input": gate.complement(*z) if self.tied else torch.sigmoid(a["i"]),
            "output": torch.sigmoid(a["o"]),
        }

    def input_biases(self, weights: Weights) -> list[Tensor]:
        return [] if self.tied else self._bias_block(weights, "i")
