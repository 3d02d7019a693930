"""JANET's bound, for every gate, and its authors' form for the sigmoid."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.gates import GATES
from tests.layers.tolerances import BOUND


@pytest.mark.parametrize("dtype", BOUND, ids=str)
@pytest.mark.parametrize("beta", [1.0, 2.0])
@pytest.mark.parametrize("gate", GATES)
def test_bound(gate: str, beta: float, dtype: torch.dtype) -> None:
    """|h| ≤ e^β, with large random weights and inputs; a shift on z instead would reach hundreds."""
    largest = 0.0
    for scale in (1.0, 5.0, 30.0):
        torch.manual_seed(0)
        layer: Any = gatedrnn.JANET(3, 16, forget_gate=gate, beta=beta, dtype=dtype)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(scale)
            layer.bias_ih_l0[:16] += torch.linspace(-4, 6, 16, dtype=dtype)
            start = (2 * torch.rand(1, 8, 16, dtype=dtype) - 1) * math.exp(beta)
            x = torch.sign(torch.randn(1, 8, 3, dtype=dtype)).expand(40, 8, 3)
            output, _ = layer(x, start)
        assert torch.isfinite(output).all()
        largest = max(largest, output.abs().max().item())
    assert largest <= math.exp(beta) * (1 + BOUND[dtype])
    assert largest > 0.5 * math.exp(beta)  # the bound was put to the test


def test_the_authors_form_for_the_sigmoid() -> None:
    """f = σ(z), input factor 1−σ(z−β)."""
    layer: Any = gatedrnn.JANET(2, 3, beta=0.7, dtype=torch.float64)
    x = torch.randn(5, 2, 2, dtype=torch.float64)
    _, _, states = layer(x, return_states="gates")
    h = torch.zeros(2, 3, dtype=torch.float64)
    for t in range(5):
        z = x[t] @ layer.weight_ih_l0.T + layer.bias_ih_l0 + h @ layer.weight_hh_l0.T + layer.bias_hh_l0
        f, i = torch.sigmoid(z[:, :3]), 1 - torch.sigmoid(z[:, :3] - 0.7)
        h = f * h + i * torch.tanh(z[:, 3:])
        for name, expected in (("forget", f), ("input", i), ("h", h)):
            torch.testing.assert_close(states[name][0, t], expected, rtol=1e-11, atol=1e-11)


def test_beta_reaches_the_cell_module() -> None:
    torch.manual_seed(0)
    layer: Any = gatedrnn.JANET(2, 3, beta=0.3)
    torch.manual_seed(0)
    cell: Any = gatedrnn.JANETCell(2, 3, beta=0.3)
    x = torch.randn(1, 2, 2)
    torch.testing.assert_close(cell(x[0]), layer(x)[0][0])
    assert not torch.equal(gatedrnn.JANETCell(2, 3).eval()(x[0]), cell(x[0]))
