"""Packed and padded sequences: the same rows with and without room past their ends."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gatedrnn.engines.interface import Scan


def check_batch_sizes(batch_sizes: Tensor, rows: int) -> None:
    """Raise RuntimeError unless these are the batch sizes of so many packed rows."""
    kind = batch_sizes.dtype, batch_sizes.dim(), batch_sizes.device.type, batch_sizes.layout
    if kind != (torch.int64, 1, "cpu", torch.strided):
        raise RuntimeError(
            "batch_sizes must be a 1-D int64 tensor on the CPU, "
            f"got {batch_sizes.dim()}-D {batch_sizes.dtype} on {batch_sizes.device} with layout {batch_sizes.layout}"
        )
    if len(batch_sizes) == 0:
        raise RuntimeError("batch_sizes must have an entry for each time step, got none")
    rises = bool((batch_sizes[1:] > batch_sizes[:-1]).any())
    # Bounded by the first entry, the sum cannot overflow.
    if rises or int(batch_sizes[-1]) < 1 or int(batch_sizes[0]) > rows or int(batch_sizes.sum()) != rows:
        raise RuntimeError(
            f"batch_sizes must never increase, be at least 1 and sum to {rows}, the number of packed rows, "
            f"got {batch_sizes}"
        )


def packed_places(batch_sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of the rows of packed data in (T·B, features), and the lengths of the rows, longest first."""
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    device = batch_sizes.device  # not torch's default device, which may be a different one
    active = torch.arange(batch, device=device) < batch_sizes.unsqueeze(-1)  # (T, B)
    return torch.arange(steps * batch, device=device)[active.flatten()], active.sum(0)


def padded(data: Tensor, places: Tensor, batch_sizes: Tensor) -> Tensor:
    """(N, features) as (T, B, features), zero past the lengths.

    One copy in place of torch's loop over the steps, whose backward pass costs more than the layer itself.
    """
    steps, batch = len(batch_sizes), int(batch_sizes[0])
    rows = data.new_zeros(steps * batch, data.shape[-1]).index_copy(0, places, data)
    return rows.view(steps, batch, data.shape[-1])


def packed(sequence: Tensor, places: Tensor) -> Tensor:
    """(T, B, features) as (N, features)."""
    return sequence.flatten(0, 1).index_select(0, places)


def padded_scan(scan: Scan) -> tuple[Scan, Tensor]:
    """A packed scan as one with lengths, and the places of the packed rows."""
    assert scan.batch_sizes is not None
    places, lengths = (part.to(scan.input.device) for part in packed_places(scan.batch_sizes))
    return replace(scan, input=padded(scan.input, places, scan.batch_sizes), lengths=lengths, batch_sizes=None), places
