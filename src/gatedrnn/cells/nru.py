"""Non-saturating recurrent unit (Chandar et al., 2019), as in its authors' code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.cells.base import Cell, PreActivations, State, Weights, linear, wide
from gatedrnn.gates import Gate

#: The L5 norm above which a row of directions counts as zero: where the fifth powers sum to the largest float32.
LARGEST_NORM = torch.finfo(torch.float32).max ** 0.2


@dataclass(frozen=True)
class NRUEquations(Cell):
    """h = ReLU(W_h [x; h; m] + b_h); K heads write to and erase from the memory m along directions of L5 norm 1.

    With u = [h; m]: m = m + mean over the heads of (α_k v^α_k − β_k v^β_k), where α = W_a u + b_a, β = W_b u + b_b
    and v^α is the outer product of the halves of W_va u + b_va, reshaped to (K, M); v^β likewise. ReLU acts on α, β and
    the outer products, but for ``relu=False``.

    The authors' code takes the norm in float32, where it is infinite above 5.1e7, and so the direction is zero. This is
    written out here, for every dtype, because the cell depends on it: the change of m is in proportion to m, so m grows
    until the rows leave float32, and rests at about 5e4. docs/nru.md has the evidence for this and for ``relu``.
    """

    memory_size: int = 64
    heads: int = 4
    relu: bool = True
    states = ("h", "m")
    takes_gate = False

    def __post_init__(self) -> None:
        if self.memory_size < 1 or self.heads < 1:
            raise ValueError(
                f"NRU needs a positive memory_size and heads, got memory_size={self.memory_size}, heads={self.heads}"
            )
        if self._factor() ** 2 != self.memory_size * self.heads:
            raise ValueError(
                f"NRU needs memory_size·heads to be a square, "
                f"got {self.memory_size}·{self.heads} = {self.memory_size * self.heads}"
            )

    def _factor(self) -> int:
        """s with s² = M·K: the outer product of two s-vectors fills all heads."""
        return math.isqrt(self.memory_size * self.heads)

    def state_sizes(self, hidden_size: int) -> tuple[int, ...]:
        return hidden_size, self.memory_size

    def parameter_shapes(self, input_size: int, hidden_size: int, bias: bool, aux: bool) -> dict[str, tuple[int, ...]]:
        u = hidden_size + self.memory_size
        sizes = {"h": (hidden_size, input_size + u), "a": (self.heads, u), "b": (self.heads, u)}
        sizes |= {"va": (2 * self._factor(), u), "vb": (2 * self._factor(), u)}
        shapes: dict[str, tuple[int, ...]] = {}
        for letter, (rows, columns) in sizes.items():
            shapes[f"W_{letter}"] = (rows, columns)
            if bias:
                shapes[f"b_{letter}"] = (rows,)
        return shapes

    def recurrent_weights(self) -> tuple[str, ...]:
        return ("W_h",)

    def drop_recurrent(self, weights: Weights, drop: Callable[[Tensor], Tensor]) -> Weights:
        from_x, from_state = self._columns(weights)
        return {**weights, "W_h": torch.cat([from_x, drop(from_state)], -1)}

    def _columns(self, weights: Weights) -> tuple[Tensor, Tensor]:
        """W_h as the columns that act on x and those that act on [h; m]."""
        u = weights["W_a"].shape[-1]
        return weights["W_h"][:, :-u], weights["W_h"][:, -u:]

    def prepare(self, weights: Weights) -> Weights:
        from_x, from_state = self._columns(weights)
        return {**weights, "W_h_x": from_x, "W_h_u": from_state}

    def project(self, w: Weights, x: Tensor) -> tuple[Tensor, ...]:
        from_x = linear(x, w["W_h_x"])
        return (from_x + wide(w["b_h"]) if "b_h" in w else from_x,)

    def preactivations(self, w: Weights, x: tuple[Tensor, ...], state: State) -> PreActivations:
        return {"h": x[0] + linear(torch.cat(state, -1), w["W_h_u"])}

    def update(self, gate: Gate, w: Weights, a: PreActivations, state: State) -> State:
        _, m = state
        h = torch.relu(a["h"])
        u = torch.cat([h, m], -1)

        def affine(letter: str) -> Tensor:
            product = linear(u, w[f"W_{letter}"])
            return product + wide(w[f"b_{letter}"]) if f"b_{letter}" in w else product

        def rectified(x: Tensor) -> Tensor:
            return torch.relu(x) if self.relu else x

        def directions(letter: str) -> Tensor:
            p, q = affine(letter).chunk(2, -1)
            outer = rectified(p.unsqueeze(-1) * q.unsqueeze(-2)).reshape(*p.shape[:-1], self.heads, self.memory_size)
            # The row is scaled to about 1 before its norm is taken, because the fifth power of 1e-9 is 0 in float32.
            # The result does not depend on the scale, so its gradient is not needed. Norms are at least 1e-12.
            scale = outer.detach().abs().amax(-1, keepdim=True).clamp(min=1e-12)
            scaled = outer / scale
            norm = torch.linalg.vector_norm(scaled, 5.0, -1, keepdim=True).clamp(min=1.0)
            return torch.where(norm * scale > LARGEST_NORM, 0.0, scaled / norm)

        write = rectified(affine("a")).unsqueeze(-1) * directions("va")
        erase = rectified(affine("b")).unsqueeze(-1) * directions("vb")
        return h, m + (write - erase).mean(-2)

    def gates(self, gate: Gate, a: PreActivations) -> dict[str, Tensor]:
        return {}

    def reset(self, weights: Weights, gate: Gate, hidden_size: int) -> None:
        """As torch.nn.Linear: U(±1/√fan_in) for weight and bias."""
        for name, weight in weights.items():
            fan_in = weights["W" + name[1:]].shape[-1]
            bound = 1.0 / math.sqrt(fan_in)
            torch.nn.init.uniform_(weight, -bound, bound)
