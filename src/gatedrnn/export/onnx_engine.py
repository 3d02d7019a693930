"""The engine that runs while a model is exported: it puts ONNX's loop, or its own LSTM or GRU, into the graph.

torch's operator ``scan`` becomes ONNX's Scan. Its body is traced from the cell's own equations; the product with the
input comes before it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from gatedrnn import cells
from gatedrnn.cells import Cell, Weights
from gatedrnn.cells.base import FusedCell
from gatedrnn.engines import Engine, Scan, ScanResult
from gatedrnn.engines.reference import result_of, step_of, steps_in_order
from gatedrnn.export.onnx_functions import OnnxFunctions
from gatedrnn.gates import Gate, Sigmoid

#: Order of the row blocks in ONNX's operators, by the cells' names of the blocks.
_LSTM_ROWS = ("i", "o", "f", "g")
_GRU_ROWS = ("f", "r", "n")


@dataclass(frozen=True)
class OnnxEngine(Engine):
    """For one module of the model, whose place it names in errors."""

    name: ClassVar[str] = "onnx"
    #: The module, for errors.
    where: str
    #: The layer's gate in the graph.
    gate: Gate
    #: Do not use ONNX's own LSTM and GRU.
    exact: bool
    #: The model is called with one step at a time.
    step: bool
    #: The number of steps is meant to be one number.
    fixed_steps: bool

    def refuses(self, scan: Scan) -> str | None:
        return None

    def describe(self, scan: Scan) -> str:
        return "the loop over time as ONNX"

    def run(self, scan: Scan) -> ScanResult:
        if scan.batch_sizes is not None:
            raise RuntimeError(f"{self.where}: a PackedSequence cannot be exported; pass padded input and lengths=")
        one_step = is_one(scan.input.shape[0])
        if self.step and not one_step:
            raise RuntimeError(f"{self.where}: step=True exports one step, but the example has {scan.input.shape[0]}")
        if isinstance(scan.input.shape[0], int) and not self.fixed_steps:
            warnings.warn(
                f"{self.where}: the model fixes the number of steps at {scan.input.shape[0]}, and so does the file",
                stacklevel=2,
            )
        scan = replace(scan, gate=self.gate)
        if not (self.exact or one_step or scan.collect) and is_native(scan.cell, scan.gate, scan.input.dtype):
            return _native(scan)
        x, active = steps_in_order(scan)
        # In the order of its memory: for a transposed view torch.export would require sizes other than 1.
        x = x.clone(memory_format=torch.contiguous_format)
        w = scan.cell.prepare(scan.weights)
        with OnnxFunctions():
            projected = scan.cell.project(w, x)
        return result_of(scan, *_loop(scan, w, projected, active), active)


def is_one(size: int | torch.SymInt) -> bool:
    """Whether a size is 1 in every call."""
    return isinstance(size, int) and size == 1


def _loop(
    scan: Scan, w: Weights, projected: Sequence[Tensor], active: Tensor | None
) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """All steps: the last state, and what is kept of each."""
    names: list[str] = []
    states, inputs = len(scan.state), len(projected)

    def step(*tensors: Tensor) -> list[Tensor]:
        state, x, flags = tensors[:states], tensors[states : states + inputs], tensors[states + inputs : ends]
        weights = dict(zip(w, tensors[ends:], strict=True))
        with OnnxFunctions():
            new, kept = step_of(scan, weights, x, flags[0] if flags else None, state)
        names[:] = kept
        return [*new, *(value.clone() for value in kept.values())]  # an output must not be the next state itself

    sequences = [*projected, *([] if active is None else [active])]
    ends = states + len(sequences)
    if is_one(projected[0].shape[0]):
        results = step(*scan.state, *(sequence[0] for sequence in sequences), *w.values())
        results[states:] = [value.unsqueeze(0) for value in results[states:]]
    else:
        # Copies, which the exporter removes: the operator takes no two views of one tensor.
        state, weights = [s.clone() for s in scan.state], tuple(value.clone() for value in w.values())
        results = list(torch.ops.higher_order.scan(step, state, sequences, weights))
    return tuple(results[:states]), dict(zip(names, results[states:], strict=True))


def is_native(cell: Cell, gate: Gate, dtype: torch.dtype) -> bool:
    """Whether ONNX's LSTM or GRU is this layer. onnxruntime runs them in float32 only."""
    # By the type itself: a subclass has equations of its own.
    lstm = type(cell) is cells.LSTMEquations and not (cell.tied or cell.proj_size)
    known = lstm or type(cell) is cells.GRUEquations
    return known and gate == Sigmoid() and dtype == torch.float32


def _native(scan: Scan) -> ScanResult:
    cell, x, w = scan.cell, scan.input, scan.weights
    assert isinstance(cell, FusedCell)
    (steps, batch, _), hidden_size, lstm = x.shape, scan.state[0].shape[-1], isinstance(cell, cells.LSTMEquations)
    order = [cell.row_blocks().index(block) for block in (_LSTM_ROWS if lstm else _GRU_ROWS)]

    def rows(name: str) -> Tensor:
        # Slices, which torch's exporter folds into constants; it does not fold the pieces of a chunk.
        return torch.cat([w[name][index * hidden_size : (index + 1) * hidden_size] for index in order])

    bias = torch.cat([rows("bias_ih"), rows("bias_hh")]).unsqueeze(0) if "bias_ih" in w else None
    lengths = None if scan.lengths is None else scan.lengths.to(torch.int32)
    weights = [rows("weight_ih").unsqueeze(0), rows("weight_hh").unsqueeze(0), bias]
    attributes: dict[str, Any] = {
        "hidden_size": hidden_size,
        "direction": "reverse" if scan.reverse else "forward",
    }
    output, *state = torch.onnx.ops.symbolic_multi_out(
        "LSTM" if lstm else "GRU",
        [x, *weights, lengths, *(s.unsqueeze(0) for s in scan.state)],
        attributes if lstm else {**attributes, "linear_before_reset": 1},
        dtypes=[x.dtype] * (1 + len(scan.state)),
        shapes=[(steps, 1, batch, hidden_size), *((1, batch, hidden_size) for _ in scan.state)],
    )
    return ScanResult(output.squeeze(1), tuple(s.squeeze(0) for s in state), {})
