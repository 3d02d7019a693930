"""What can be computed of all steps at once when the output is known: no step waits for another then."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gatedrnn.cells.base import PreActivations
from gatedrnn.engines.interface import Scan


def preactivations_of(
    scan: Scan, h_0: Tensor, weights: Mapping[str, Tensor], output: Tensor
) -> tuple[PreActivations, Tensor | None]:
    """The pre-activations of a padded scan, (T, B, H) each, and the mask (T, B, 1) of the steps within the lengths."""
    steps, input = output.shape[0], scan.input
    before = torch.cat([output[1:], h_0[None]] if scan.reverse else [h_0[None], output[:-1]])
    inside: Tensor | None = None
    if scan.lengths is not None:
        time = torch.arange(steps, device=output.device)[:, None, None]
        lengths = scan.lengths[None, :, None]
        inside = time < lengths
        input = torch.where(inside, input, 0.0)  # values past the end must not reach the weights' gradient
        if scan.reverse:
            before = torch.where(time == lengths - 1, h_0[None], before)
    w = scan.cell.prepare(weights)
    return scan.cell.preactivations(w, scan.cell.project(w, input), (before, *scan.state[1:])), inside
