"""Cells whose kernel wants other weights than the cell has: the same equations on row blocks of fused weights.

The MinimalRNN's candidate depends on the input alone, so torch computes it for all steps and the kernel takes it as its
input. FastGRNN's two pre-activations differ in their biases, and its scalars enter as biases of blocks of their own.
The weights of the NRU's heads become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gatedrnn import cells
from gatedrnn.cells import State, Weights
from gatedrnn.cells.base import AUX, FusedCell, PreActivations

_AUX_NAMES = {"weight_ih": f"weight_ih_{AUX}", "weight_hh": f"weight_hh_{AUX}", "bias_ih": f"bias_ih_{AUX}"}


class _Lowered(FusedCell):
    """Shapes of fused weights without a second bias."""

    #: Row blocks of weight_hh and of the bias.
    recurrent_rows: int
    bias_rows: int

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (len(self.blocks) * hidden_size, input_size),
            "weight_hh": (self.recurrent_rows * hidden_size, hidden_size),
            "bias_ih": (self.bias_rows * hidden_size,),
        }
        if aux:
            shapes |= {f"weight_ih_{AUX}": (hidden_size, input_size), f"weight_hh_{AUX}": (hidden_size, hidden_size)}
            shapes[f"bias_ih_{AUX}"] = (hidden_size,)
        return shapes

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        size = w["weight_hh"].shape[-1]
        rows = torch.nn.functional.linear(x, w["weight_ih"]).split(size, -1)
        return tuple(part + bias for part, bias in zip(rows, w["bias"], strict=True))

    def prepare(self, weights: Weights) -> Weights:
        size = weights["weight_hh"].shape[-1]
        w = dict(super().prepare({n: v for n, v in weights.items() if not n.startswith("bias")}))
        biases = weights["bias_ih"].split(size)
        aux = [weights[f"bias_ih_{AUX}"]] if f"bias_ih_{AUX}" in weights else []
        return {**w, **self._numbers(biases), "bias": [*biases[: len(self.blocks)], *aux]}  # type: ignore[dict-item]

    def _numbers(self, biases: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Weights of the cell itself that stand among the biases."""
        return {}


@dataclass(frozen=True)
class LoweredMinimalRNN(_Lowered, cells.MinimalRNNEquations):
    """Input: the candidate z. weight_ih: V and the unit matrix."""

    blocks = ("f", "z")
    recurrent_rows, bias_rows = 1, 2

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        f, z, *aux = x
        rows = torch.nn.functional.linear(state[0], w["weight_hh"]).split(z.shape[-1], -1)
        return {"f": f + rows[0], "z": z, **({AUX: aux[0] + rows[1]} if aux else {})}


@dataclass(frozen=True)
class LoweredFastGRNN(_Lowered, cells.FastGRNNEquations):
    """weight_ih and weight_hh: W and U twice; the bias: b_z, b_h, ζ and ν for every unit."""

    blocks = ("f", "h")
    recurrent_rows, bias_rows = 2, 4

    def _numbers(self, biases: tuple[Tensor, ...]) -> dict[str, Tensor]:
        return {"zeta": biases[2], "nu": biases[3]}

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        rows = torch.nn.functional.linear(state[0], w["weight_hh"]).split(state[0].shape[-1], -1)
        return dict(zip((*self.blocks, AUX), (a + b for a, b in zip(x, rows, strict=True)), strict=False))


@dataclass(frozen=True)
class LoweredNRU(cells.NRUEquations):
    """weight_ih: W_h. weight_hh: W_a, W_b, W_va and W_vb. The biases likewise."""

    def late(self) -> int:
        """Rows of weight_hh."""
        return sum(self._rows())

    def _rows(self) -> tuple[int, ...]:
        return self.heads, self.heads, 2 * self._factor(), 2 * self._factor()

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        u = hidden_size + self.memory_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (hidden_size, input_size + u), "weight_hh": (self.late(), u)}
        return {**shapes, "bias_ih": (hidden_size,), "bias_hh": (self.late(),)} if bias else shapes

    def prepare(self, weights: Weights) -> Weights:
        own = {"W_h": weights["weight_ih"], **self._split("W", weights["weight_hh"])}
        if "bias_ih" in weights:
            own |= {"b_h": weights["bias_ih"], **self._split("b", weights["bias_hh"])}
        return super().prepare(own)

    def _split(self, kind: str, rows: Tensor) -> dict[str, Tensor]:
        return {f"{kind}_{letter}": part for letter, part in zip(_HEADS, rows.split(self._rows()), strict=True)}


_HEADS = ("a", "b", "va", "vb")


def _minimal_rnn(cell: cells.Cell, weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    assert isinstance(cell, cells.MinimalRNNEquations)
    U, V = weights["U"], weights["V"]
    zero = U.new_zeros(len(U))
    lowered = {
        "weight_ih": torch.cat([V, torch.eye(len(V), dtype=V.dtype)]),
        "weight_hh": U,
        "bias_ih": torch.cat([weights.get("b_u", zero), zero]),
    }
    return cell.candidate(weights, x), lowered | _aux(weights, "V", "U", "b_u")


def _fastgrnn(cell: cells.Cell, weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    W, U = weights["W"], weights["U"]
    zero = U.new_zeros(len(U))
    numbers = [weights[name].expand(len(U)) for name in ("zeta", "nu")]
    lowered = {
        "weight_ih": torch.cat([W, W]),
        "weight_hh": torch.cat([U, U]),
        "bias_ih": torch.cat([weights.get("b_z", zero), weights.get("b_h", zero), *numbers]),
    }
    return x, lowered | _aux(weights, "W", "U", "b_z")


def _nru(cell: cells.Cell, weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    lowered = {"weight_ih": weights["W_h"], "weight_hh": torch.cat([weights[f"W_{letter}"] for letter in _HEADS])}
    if "b_h" in weights:
        lowered |= {"bias_ih": weights["b_h"], "bias_hh": torch.cat([weights[f"b_{letter}"] for letter in _HEADS])}
    return x, lowered


def _aux(weights: Mapping[str, Tensor], *names: str) -> dict[str, Tensor]:
    """The auxiliary gate's weights on input and state and its bias, if there are any."""
    given = [weights.get(f"{name}_{AUX}") for name in names]
    if given[0] is None:
        return {}
    if given[2] is None:
        given[2] = given[0].new_zeros(len(given[0]))
    return {name: w for name, w in zip(_AUX_NAMES.values(), given, strict=True) if w is not None}


class Lowering(NamedTuple):
    """The cell that the kernel computes, and the input and the weights it takes."""

    cell: type[cells.Cell]
    #: (cell, weights, input) -> input and weights of the kernel.
    arguments: Callable[[cells.Cell, Mapping[str, Tensor], Tensor], tuple[Tensor, dict[str, Tensor]]]


LOWERED: dict[type[cells.Cell], Lowering] = {
    cells.MinimalRNNEquations: Lowering(LoweredMinimalRNN, _minimal_rnn),
    cells.FastGRNNEquations: Lowering(LoweredFastGRNN, _fastgrnn),
    cells.NRUEquations: Lowering(LoweredNRU, _nru),
}
