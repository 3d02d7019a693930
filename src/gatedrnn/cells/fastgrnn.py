"""FastGRNN (Kusupati et al., 2018). The name is the published cell's; it has nothing to do with the fast gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import AUX, Cell, PreActivations, State, Weights, forget, linear, remembered, wide
from gatedrnn.gates import Gate
from gatedrnn.inits import Constant


@dataclass(frozen=True)
class FastGRNNEquations(Cell):
    """z = φ(Wx + Uh + b_z), h̃ = tanh(Wx + Uh + b_h), h = (σ(ζ)(1−z) + σ(ν))∘h̃ + z∘h, with the same W, U in both.

    Parameters W, U, b_z, b_h and the scalars zeta, nu; refine adds W_aux, U_aux, b_z_aux.
    """

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"W": (hidden_size, input_size), "U": (hidden_size, hidden_size)}
        if bias:
            shapes |= {"b_z": (hidden_size,), "b_h": (hidden_size,)}
        shapes |= {"zeta": (1,), "nu": (1,)}
        if aux:
            shapes |= {f"W_{AUX}": (hidden_size, input_size), f"U_{AUX}": (hidden_size, hidden_size)}
            if bias:
                shapes[f"b_z_{AUX}"] = (hidden_size,)
        return shapes

    def recurrent_weights(self) -> tuple[str, ...]:
        return "U", f"U_{AUX}"

    def prepare(self, weights: Weights) -> Weights:
        w = dict(weights)
        for name in ("W", "U"):
            if f"{name}_{AUX}" in weights:
                w[name] = torch.cat([weights[name], weights[f"{name}_{AUX}"]])
        return w

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        return (linear(x, w["W"]),)

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        rows = (x[0] + linear(state[0], w["U"])).split(state[0].shape[-1], -1)
        a = {"f": rows[0], "h": rows[0]} | ({AUX: rows[1]} if len(rows) > 1 else {})
        for name, bias in (("f", "b_z"), ("h", "b_h"), (AUX, f"b_z_{AUX}")):
            if bias in w:
                a[name] = a[name] + wide(w[bias])
        return a

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        (h,) = state
        f, not_f = gate.value(*forget(a)), gate.complement(*forget(a))
        share = torch.sigmoid(wide(w["zeta"])) * not_f + torch.sigmoid(wide(w["nu"]))
        return (remembered(f, not_f, h, share * torch.tanh(a["h"])),)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {"forget": gate.value(*forget(a))}

    def forget_biases(self, weights: Weights) -> Iterator[list[Tensor]]:
        yield [weights["b_z"]]
        if f"b_z_{AUX}" in weights:
            yield [weights[f"b_z_{AUX}"]]

    def reset(self, weights: Weights, gate: Gate, hidden_size: int) -> None:
        """As the authors: weights 0.1·N(0, 1), b_h = 1, ζ = 1, ν = −4; and φ(b_z) = σ(1) for every gate."""
        constants = {"b_h": 1.0, "zeta": 1.0, "nu": -4.0}
        for name, weight in weights.items():
            if name in constants:
                torch.nn.init.constant_(weight, constants[name])
            elif not name.startswith("b_z"):
                torch.nn.init.normal_(weight, std=0.1)
        biases = Constant()(gate, hidden_size, device=next(iter(weights.values())).device)
        for name, value in zip(("b_z", f"b_z_{AUX}"), biases, strict=False):
            if name in weights:
                with torch.no_grad():
                    weights[name].copy_(value)
