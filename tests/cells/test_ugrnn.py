"""UGRNN at the ends of its gate."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.gates import GATES


@pytest.mark.parametrize("gate", GATES)
def test_an_open_gate_keeps_and_a_closed_one_takes_the_candidate(gate: str) -> None:
    cell: Any = gatedrnn.UGRNNCell(1, 2, forget_gate=gate, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih[:2] = cell.weight_hh[:2] = 0
        cell.bias_hh[:2] = 0
        cell.bias_ih[:2] = torch.tensor([1e18, -1e18])  # far enough for the slowest gate too
    x, h = torch.randn(1, 1, dtype=torch.float64), torch.randn(1, 2, dtype=torch.float64)
    rows = cell.weight_ih[2:] @ x[0] + cell.bias_ih[2:] + cell.weight_hh[2:] @ h[0] + cell.bias_hh[2:]
    kept, taken = cell(x, h)[0]
    torch.testing.assert_close(kept, h[0, 0])
    torch.testing.assert_close(taken, torch.tanh(rows)[1])
