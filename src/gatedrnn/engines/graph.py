"""The graph engine: the loop over time as torch's scan operator, for torch.compile and torch.export.

The reference engine's loop would be unrolled there, into a graph for one number of steps. Here the step is in the
graph once, as plain operations, and the graph serves every number of steps.
"""

from __future__ import annotations

import importlib.util
from typing import ClassVar

import torch
from torch import Tensor

from gatedrnn.cells import State
from gatedrnn.cells.base import wide
from gatedrnn.engines.interface import Engine, Scan, ScanResult, wants_gradient
from gatedrnn.engines.reference import result_of, step_of, steps_in_order

_HAS_SCAN = importlib.util.find_spec("torch._higher_order_ops.scan") is not None


class GraphEngine(Engine):
    """Serves every cell, gate, dtype and device where torch compiles or exports."""

    name: ClassVar[str] = "graph"
    in_graphs_only: ClassVar[bool] = True

    def refuses(self, scan: Scan) -> str | None:
        if not torch.compiler.is_compiling():
            return "it runs in torch.compile and torch.export only"
        if not _HAS_SCAN:
            return f"torch {torch.__version__} has no scan operator"
        if not torch.compiler.is_exporting() and wants_gradient(scan):
            return "it has no gradient in a compiled graph"  # tried: training through torch's scan ends in an error
        return None

    def describe(self, scan: Scan) -> str:
        return "the loop over time as torch's scan operator"

    def run(self, scan: Scan) -> ScanResult:
        from torch._higher_order_ops.scan import scan as torch_scan

        # torch's scan takes no two views of one tensor.
        w = {name: weight.clone() for name, weight in scan.cell.prepare(scan.weights).items()}
        x, active = steps_in_order(scan)

        def step(state: State, slices: tuple[Tensor, ...]) -> tuple[State, dict[str, Tensor]]:
            x_t, active_t = (slices, None) if active is None else (slices[:-1], slices[-1])
            new, kept = step_of(scan, w, x_t, active_t, state)
            return new, {name: value.clone() for name, value in kept.items()}

        sequences = (*scan.cell.project(w, x), *(() if active is None else (active,)))
        state, kept = torch_scan(step, tuple(wide(s) for s in scan.state), sequences)
        return result_of(scan, state, kept, active)
