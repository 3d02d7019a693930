"""MinimalRNN (Chen, 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import AUX, Cell, PreActivations, State, Weights, forget, linear, wide
from gatedrnn.gates import Gate


@dataclass(frozen=True)
class MinimalRNNEquations(Cell):
    """z = tanh(W x + b_z), u = φ(U h + V z + b_u), h = u∘h + (1−u)∘z. Parameters W, U, V, b_z, b_u."""

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        square = (hidden_size, hidden_size)
        shapes: dict[str, tuple[int, ...]] = {"W": (hidden_size, input_size), "U": square, "V": square}
        if bias:
            shapes |= {"b_z": (hidden_size,), "b_u": (hidden_size,)}
        if aux:
            shapes |= {f"U_{AUX}": square, f"V_{AUX}": square}
            if bias:
                shapes[f"b_u_{AUX}"] = (hidden_size,)
        return shapes

    def recurrent_weights(self) -> tuple[str, ...]:
        return "U", f"U_{AUX}"

    def prepare(self, weights: Weights) -> Weights:
        w = dict(weights)
        for name in ("U", "V", "b_u"):
            if f"{name}_{AUX}" in weights:
                w[name] = torch.cat([weights[name], weights[f"{name}_{AUX}"]])
        return w

    def candidate(self, w: Weights, x: Tensor) -> Tensor:
        """z, which does not depend on the state."""
        z = linear(x, w["W"])
        return torch.tanh(z + wide(w["b_z"]) if "b_z" in w else z)

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        z = self.candidate(w, x)
        from_z = linear(z, w["V"])
        return z, from_z + wide(w["b_u"]) if "b_u" in w else from_z

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        z, from_z = x
        rows = from_z + linear(state[0], w["U"])
        return dict(zip(("f", AUX), rows.split(z.shape[-1], -1), strict=False)) | {"z": z}

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        return (h + gate.complement(*forget(a)) * (a["z"] - h),)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a))}

    def forget_biases(self, weights: Weights) -> Iterator[list[Tensor]]:
        yield [weights["b_u"]]
        if f"b_u_{AUX}" in weights:
            yield [weights[f"b_u_{AUX}"]]
