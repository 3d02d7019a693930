"""What a cell is: one step of time as pure maths, and the facts about it that layers and engines need."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from gatedrnn.gates import Gate

Weights = Mapping[str, Tensor]
State = tuple[Tensor, ...]
PreActivations = dict[str, Tensor]

#: Key of the auxiliary pre-activation of a gate with two (refine), and ending of its parameters' names.
AUX = "aux"


class Cell(ABC):
    """One step of a recurrent layer. Cells are frozen dataclasses; they receive a gate and never name one.

    A step is ``a = preactivations(w, x_t, state)`` and ``state = update(gate, w, a, state)``, where
    ``w = prepare(weights)`` is made once a call and ``x_t`` is a slice of ``project(w, x)``, the part that depends
    on the input alone. The first entry of the state is what the layer puts out.

    Matrix products take the dtype of the weights; all else, the state above all, is float32 or wider.
    """

    #: Names of the state's entries. The last one is the memory.
    states: ClassVar[tuple[str, ...]] = ("h",)
    #: Whether the cell has a forget gate whose function can be replaced. If not, it ignores the gate it is given.
    takes_gate: ClassVar[bool] = True

    @abstractmethod
    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        """Names and shapes of one layer's parameters, in the order of torch.nn, those of the auxiliary gate last."""

    @abstractmethod
    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        """Everything that depends on the input alone, for all steps at once."""

    @abstractmethod
    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations: ...

    @abstractmethod
    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State: ...

    @abstractmethod
    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        """The values of the gates "forget", "input" and "output" that the cell has."""

    @abstractmethod
    def recurrent_weights(self) -> tuple[str, ...]:
        """Names of the weights that act on the state, the ones DropConnect thins."""

    def state_sizes(self, hidden_size: int) -> tuple[int, ...]:
        return (hidden_size,) * len(self.states)

    def prepare(self, weights: Weights) -> Weights:
        return weights

    def forget_biases(self, weights: Weights) -> Iterator[list[Tensor]]:
        """For each pre-activation of the forget gate, views of the biases that sum up to it."""
        yield from ()

    def input_biases(self, weights: Weights) -> list[Tensor]:
        """Views of the biases of an input gate of its own; none where there is no such gate."""
        return []

    def drop_recurrent(self, weights: Weights, drop: Callable[[Tensor], Tensor]) -> Weights:
        dropped = {name: drop(weights[name]) for name in self.recurrent_weights() if name in weights}
        return {**weights, **dropped}

    def reset(self, weights: Weights, gate: Gate, hidden_size: int) -> None:
        """Draw the given parameters, in their order: U(±1/√H) as torch.nn."""
        bound = 1.0 / math.sqrt(hidden_size)
        for weight in weights.values():
            torch.nn.init.uniform_(weight, -bound, bound)


class FusedCell(Cell):
    """A cell with torch.nn's parameters: row blocks of H in weight_ih, weight_hh, bias_ih and bias_hh.

    The auxiliary gate's weights have the same names with ``_aux``; prepare() puts their rows below the others.
    """

    #: Names of the row blocks, in order; "f" is the forget gate.
    blocks: ClassVar[tuple[str, ...]]

    def row_blocks(self) -> tuple[str, ...]:
        return self.blocks

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        width = self.state_sizes(hidden_size)[0]
        for ending, rows in [("", len(self.row_blocks()) * hidden_size)] + ([("_" + AUX, hidden_size)] if aux else []):
            shapes[f"weight_ih{ending}"] = (rows, input_size)
            shapes[f"weight_hh{ending}"] = (rows, width)
            if bias:
                shapes[f"bias_ih{ending}"] = (rows,)
                shapes[f"bias_hh{ending}"] = (rows,)
        return shapes

    def recurrent_weights(self) -> tuple[str, ...]:
        return "weight_hh", f"weight_hh_{AUX}"

    def prepare(self, weights: Weights) -> Weights:
        w = {name: weights[name] for name in weights if not name.endswith("_" + AUX)}
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            if f"{name}_{AUX}" in weights:
                w[name] = torch.cat([weights[name], weights[f"{name}_{AUX}"]])
        return w

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        rows = linear(x, w["weight_ih"])
        if "bias_ih" in w:
            # In float32 at least, outside the product: a bias rounded with a 16-bit product would be another
            # time scale.
            rows = rows + (wide(w["bias_ih"]) + wide(w["bias_hh"]))
        return (rows,)

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        return self._named(x[0] + linear(state[0], w["weight_hh"]), state)

    def _named(self, rows: Tensor, state: State) -> PreActivations:
        """The row blocks by name. There is one more than the cell's own where the gate has an auxiliary."""
        hidden_size = state[-1].shape[-1]
        return dict(zip((*self.row_blocks(), AUX), rows.split(hidden_size, -1), strict=False))

    def forget_biases(self, weights: Weights) -> Iterator[list[Tensor]]:
        yield self._bias_block(weights, "f")
        if f"bias_ih_{AUX}" in weights:
            yield [weights[f"bias_ih_{AUX}"], weights[f"bias_hh_{AUX}"]]

    def _bias_block(self, weights: Weights, block: str) -> list[Tensor]:
        index, count = self.row_blocks().index(block), len(self.row_blocks())
        return [weights[name].chunk(count)[index] for name in ("bias_ih", "bias_hh")]


def wide(x: Tensor) -> Tensor:
    """x in float32 where it is 16-bit."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ in the dtype of the weight (or of autocast), the result in float32 at least."""
    return wide(F.linear(x.to(weight.dtype), weight))


def remembered(f: Tensor, not_f: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """f∘old + new, with the digits of both f and 1−f.

    Close to 1, f has lost the digits of 1−f, so the memory changes by new − (1−f)∘old. Below ½, that would add the old
    memory and take it away again, and lose the digits of what is left of it and of the new.
    """
    closing = f < 0.5
    return torch.where(closing, 0.0, old) + (new + torch.where(closing, f, -not_f) * old)


def forget(a: PreActivations) -> tuple[Tensor, ...]:
    """The pre-activations of the forget gate: z, or (z, z_r)."""
    return (a["f"], a[AUX]) if AUX in a else (a["f"],)
