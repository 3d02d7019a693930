"""The GRU cell in torch's form."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gatedrnn


def test_by_hand() -> None:
    """One unit, numbers worked out with math: the reset acts after the product, its bias inside."""
    cell: Any = gatedrnn.GRUCell(1, 1, forget_gate="fast", dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(torch.tensor([[0.3], [-0.7], [1.1]]))
        cell.weight_hh.copy_(torch.tensor([[-0.2], [0.9], [0.5]]))
        cell.bias_ih.copy_(torch.tensor([0.1, 0.2, -0.3]))
        cell.bias_hh.copy_(torch.tensor([-0.4, 0.6, 0.8]))
    x, h = 0.5, -0.25
    w = {name: p.flatten().tolist() for name, p in cell.named_parameters()}

    def row(k: int) -> tuple[float, float]:
        return w["weight_ih"][k] * x + w["bias_ih"][k], w["weight_hh"][k] * h + w["bias_hh"][k]

    r = 1 / (1 + math.exp(-sum(row(0))))
    f = 1 / (1 + math.exp(-math.sinh(sum(row(1)))))
    n = math.tanh(row(2)[0] + r * row(2)[1])
    actual = cell(torch.tensor([x], dtype=torch.float64), torch.tensor([h], dtype=torch.float64))
    assert actual.item() == pytest.approx((1 - f) * n + f * h, rel=1e-12)


def test_the_state_is_bounded_by_one() -> None:
    for gate in gatedrnn.gates.GATES:
        torch.manual_seed(0)
        layer: Any = gatedrnn.GRU(3, 8, forget_gate=gate)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(20)
        assert layer(10 * torch.randn(50, 4, 3))[0].abs().max() <= 1 + 1e-6
