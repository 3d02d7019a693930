"""The contract between layers and engines: one scan in, its result out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from gatedrnn.cells import Cell, State, Weights
from gatedrnn.engines.operator import all_plain
from gatedrnn.gates import Gate

#: (input, state, weights) -> output, None for a single step of time without a dimension of it, and the final states. No
#: state: zeros.
Repeat = Callable[[Tensor, Sequence[Tensor], Iterable[Tensor]], tuple[Tensor | None, tuple[Tensor, ...]]]

#: What a scan keeps beside its output: nothing, the states of all steps, or these and the values of the gates.
Collect = Literal[False, True, "gates"]


@dataclass(frozen=True)
class Scan:
    """The loop over time that a layer asks for: one layer, one direction."""

    cell: Cell
    gate: Gate
    #: (T, B, I), any strides; packed: (N, I).
    input: Tensor
    #: (B, size) each.
    state: State
    #: Under the names of the cell's parameter_shapes.
    weights: Weights
    #: (B,) on the device of the input, 1 ≤ length ≤ T, in any order; None: all rows have T steps.
    lengths: Tensor | None = None
    #: From the true end of each row to its beginning.
    reverse: bool = False
    #: Store the state every √T steps only and compute the rest again in the backward pass.
    recompute: bool = False
    collect: Collect = False
    #: (T,) on the CPU: the input is packed as torch's PackedSequence, the first batch_sizes[t] rows of step t after
    #: those of step t−1, rows sorted by length, the longest first. None: the input is padded.
    batch_sizes: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Input, state and weights."""
        return self.input, *self.state, *self.weights.values()

    @cached_property
    def plain(self) -> bool:
        """Whether the memory of all tensors holds their values, on the CPU, and none is of a subclass. Looked at once:
        it takes a noticeable part of a single step."""
        tensors = self.tensors if self.lengths is None else (*self.tensors, self.lengths)
        return all(type(t) is Tensor or type(t) is Parameter for t in tensors) and all_plain(tensors)


def wants_gradient(scan: Scan) -> bool:
    """Whether autograd will ask for the derivative of this scan."""
    tensors = (scan.input, *scan.state, *scan.weights.values())
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class ScanResult(NamedTuple):
    #: (T, B, size of h), zero past the length, or (N, size of h) if packed; in the dtype of the input.
    output: Tensor
    #: At the end of each row; in the dtype of the state given.
    state: State
    #: "h", "c" … and "forget", "input", "output": (T, B, H), zero past the length, also if packed.
    collected: dict[str, Tensor]


class Engine(ABC):
    """Runs scans. All engines give the reference engine's result."""

    name: ClassVar[str]
    #: Whether it serves only what torch compiles or exports.
    in_graphs_only: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, scan: Scan) -> str | None:
        """Why this engine cannot run the scan; None if it can."""

    def missing(self) -> str | None:
        """Why this engine cannot run anything on this machine; None if it can."""
        return None

    def wrong_setting(self) -> str | None:
        """The reason in missing(), where it is a setting of the user that cannot be followed; else None."""
        return None

    @abstractmethod
    def describe(self, scan: Scan) -> str:
        """What will run, for a scan it does not refuse."""

    @abstractmethod
    def run(self, scan: Scan) -> ScanResult: ...

    def repeat(self, scan: Scan) -> Repeat | None:
        """What runs scans whose tensors are of the same kind as in this one, without looking at them again: dtype,
        shapes, plain, on the CPU, recorded by autograd or not. None where there is no short way."""
        return None
