"""The native scan as torch operators: ``gatedrnn::scan`` and ``gatedrnn::scan_backward``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from gatedrnn.engines.cpu import calls
from gatedrnn.engines.cpu.kernel import parse
from gatedrnn.engines.interface import Scan
from gatedrnn.engines.operator import Operator, Options, Results
from gatedrnn.engines.packing import packed, packed_places
from gatedrnn.engines.reference import ReferenceEngine


def _results(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    options: Options,
) -> Results:
    return calls.room_for_results(input, state, batch_sizes, parse(options.kernel), options, Tensor.new_empty)


def _gradients(
    gradients: Sequence[Tensor], input: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor], *others: Any
) -> list[Tensor]:
    return calls.room_for_gradients(input, state, weights, others[-1], Tensor.new_empty)


def _reference(
    input: Tensor,
    state: Sequence[Tensor],
    weights: Sequence[Tensor],
    lengths: Tensor | None,
    batch_sizes: Tensor | None,
    kernel: str,
    reverse: bool,
) -> list[Tensor]:
    parsed = parse(kernel)
    named = dict(zip(parsed.weights, weights, strict=True))
    cell = parsed.made_cell(proj_size=named["weight_hr"].shape[0] if "weight_hr" in named else 0)
    scan = Scan(
        cell, parsed.made_gate(), input, tuple(state), named, lengths, reverse, collect=True, batch_sizes=batch_sizes
    )
    result = ReferenceEngine().run(scan)
    if len(state) == 1:
        return [result.output, *result.state]
    memory = result.collected[cell.states[-1]]
    if batch_sizes is not None:
        memory = packed(memory, packed_places(batch_sizes)[0])
    return [result.output, *result.state, memory]


OPERATOR = Operator("scan", calls.run_forward, calls.run_backward, _results, _gradients, _reference)
#: For arguments of a kind that was checked before.
KNOWN = OPERATOR.without_checks(calls.run_known_forward)
scan, scan_backward = OPERATOR.scan, OPERATOR.scan_backward
