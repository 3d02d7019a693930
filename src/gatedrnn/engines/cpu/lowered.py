"""Cells whose kernel wants other weights than the cell has: the same equations on row blocks of fused weights.

The MinimalRNN's candidate depends on the input alone, so torch computes it for all steps and the kernel takes it as its
input. FastGRNN's two pre-activations differ in their biases, and its scalars enter as biases of blocks of their own.
The weights of the NRU's heads become one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from gatedrnn import cells
from gatedrnn.cells import State, Weights
from gatedrnn.cells.base import AUX, FusedCell, PreActivations

_T = TypeVar("_T")
#: The kernel's names of weights; the candidate's own are not among them.
_MINIMAL_RNN = {"V": "weight_ih", "U": "weight_hh", "b_u": "bias_ih"}
_MINIMAL_RNN |= {f"{own}_{AUX}": f"{name}_{AUX}" for own, name in _MINIMAL_RNN.items()}


def _renamed(named: Mapping[str, _T], names: Mapping[str, str]) -> dict[str, _T]:
    """What has a new name, under it."""
    return {new: named[name] for name, new in names.items() if name in named}


@dataclass(frozen=True)
class LoweredMinimalRNN(cells.MinimalRNNEquations):
    """Input: the candidate z. weight_ih: V; weight_hh: U; the bias: b_u."""

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        return _renamed(super().parameter_shapes(input_size, hidden_size, bias, aux), _MINIMAL_RNN)

    def prepare(self, weights: Weights) -> Weights:
        return super().prepare(_renamed(weights, {name: own for own, name in _MINIMAL_RNN.items()}))

    def candidate(self, w: Weights, x: Tensor) -> Tensor:
        return x


@dataclass(frozen=True)
class LoweredFastGRNN(FusedCell, cells.FastGRNNEquations):
    """weight_ih and weight_hh: W and U twice; the bias: b_z, b_h, ζ and ν for every unit."""

    blocks = ("f", "h")

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (2 * hidden_size, input_size),
            "weight_hh": (2 * hidden_size, hidden_size),
            "bias_ih": (4 * hidden_size,),
        }
        if aux:
            shapes |= {f"weight_ih_{AUX}": (hidden_size, input_size), f"weight_hh_{AUX}": (hidden_size, hidden_size)}
            shapes[f"bias_ih_{AUX}"] = (hidden_size,)
        return shapes

    def prepare(self, weights: Weights) -> Weights:
        w = dict(super().prepare({n: v for n, v in weights.items() if not n.startswith("bias")}))
        b_z, b_h, zeta, nu = weights["bias_ih"].chunk(4)
        aux = [weights[f"bias_ih_{AUX}"]] if f"bias_ih_{AUX}" in weights else []
        return {**w, "zeta": zeta, "nu": nu, "bias": [b_z, b_h, *aux]}  # type: ignore[dict-item]

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        size = w["weight_hh"].shape[-1]
        rows = torch.nn.functional.linear(x, w["weight_ih"]).split(size, -1)
        return tuple(part + bias for part, bias in zip(rows, w["bias"], strict=True))

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
    return cell.candidate(weights, x), _renamed(weights, _MINIMAL_RNN)


def _fastgrnn(cell: cells.Cell, weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    W, U = weights["W"], weights["U"]
    zero = U.new_zeros(len(U))
    numbers = [weights[name].expand(len(U)) for name in ("zeta", "nu")]
    lowered = {
        "weight_ih": torch.cat([W, W]),
        "weight_hh": torch.cat([U, U]),
        "bias_ih": torch.cat([weights.get("b_z", zero), weights.get("b_h", zero), *numbers]),
    }
    if f"W_{AUX}" in weights:
        lowered |= {f"weight_ih_{AUX}": weights[f"W_{AUX}"], f"weight_hh_{AUX}": weights[f"U_{AUX}"]}
        lowered[f"bias_ih_{AUX}"] = weights.get(f"b_z_{AUX}", zero)
    return x, lowered


def _nru(cell: cells.Cell, weights: Mapping[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    lowered = {"weight_ih": weights["W_h"], "weight_hh": torch.cat([weights[f"W_{letter}"] for letter in _HEADS])}
    if "b_h" in weights:
        lowered |= {"bias_ih": weights["b_h"], "bias_hh": torch.cat([weights[f"b_{letter}"] for letter in _HEADS])}
    return x, lowered


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
