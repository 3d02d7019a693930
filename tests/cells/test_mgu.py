"""The minimal gated unit: its published gate is our complement."""

from __future__ import annotations

from typing import Any

import torch

import gatedrnn


def test_published_form() -> None:
    """f* = σ(W_f x + U_f h + b), h̃ = tanh(W x + U(f*∘h) + b), h = (1−f*)∘h + f*∘h̃, with all gate rows negated."""
    torch.manual_seed(0)
    cell: Any = gatedrnn.MGUCell(2, 3, dtype=torch.float64)
    x, h = torch.randn(2, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    gate = torch.sigmoid(-(cell.weight_ih @ x + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh)[:3])
    inner = cell.weight_ih[3:] @ x + cell.bias_ih[3:] + cell.weight_hh[3:] @ (gate * h) + cell.bias_hh[3:]
    torch.testing.assert_close(cell(x, h), (1 - gate) * h + gate * torch.tanh(inner), rtol=1e-12, atol=1e-12)
