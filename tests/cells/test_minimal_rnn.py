"""MinimalRNN: the new state lies between the old one and the encoded input."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.gates import GATES


@pytest.mark.parametrize("gate", GATES)
def test_convex_combination(gate: str) -> None:
    torch.manual_seed(0)
    cell: Any = gatedrnn.MinimalRNNCell(2, 6, forget_gate=gate, dtype=torch.float64)
    x, h = torch.randn(5, 2, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64)
    z = torch.tanh(x @ cell.W.T + cell.b_z)
    new = cell(x, h)
    share = (new - z) / (h - z)
    assert ((share > 0) & (share < 1)).all()
    aux = [h @ cell.U_aux.T + z @ cell.V_aux.T + cell.b_u_aux] if gate == "refine" else []
    expected = cell.forget_gate.value(h @ cell.U.T + z @ cell.V.T + cell.b_u, *aux)
    torch.testing.assert_close(share, expected, rtol=1e-9, atol=1e-9)
