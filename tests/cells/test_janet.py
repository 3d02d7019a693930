"""JANET's bound, for every gate, and its authors' form for the sigmoid."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn import cells
from gatedrnn.gates import GATES
from tests.layers.tolerances import BETA, BOUND


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


@pytest.mark.parametrize(
    "beta", [math.nan, math.inf, -math.inf, 20.001, -20.001, 88.0, -800.0, 1e300, 10**400], ids=str
)
def test_beta_out_of_range(beta: float) -> None:
    for make in (
        lambda: gatedrnn.JANET(2, 3, beta=beta),
        lambda: gatedrnn.JANETCell(2, 3, beta=beta),
        lambda: cells.JANETEquations(beta),
    ):
        with pytest.raises(ValueError, match=re.escape(f"beta must lie between -20 and 20, got {beta}")):
            make()


@pytest.mark.parametrize("beta", ["1", None, True, 1j, torch.tensor(1.0)], ids=str)
def test_beta_is_a_number(beta: Any) -> None:
    for make in (
        lambda: gatedrnn.JANET(2, 3, beta=beta),
        lambda: gatedrnn.JANETCell(2, 3, beta=beta),
        lambda: cells.JANETEquations(beta),
    ):
        with pytest.raises(TypeError, match=f"beta should be a number, got: {type(beta).__name__}"):
            make()


@pytest.mark.parametrize("beta", [-20.0, -7.5, 0.0, 7.5, 20.0])
@pytest.mark.parametrize("name", GATES)
def test_values_and_gradients_over_the_range(name: str, beta: float, each_engine: str) -> None:
    """Float32 against i = σ(β − logit f) and its derivative in float64, from no memory to saturation.

    The weights are the identity and the biases 0, so that z is exact; h is of the size that it may have.
    """
    gate, H = GATES[name](), 64
    z = torch.cat([torch.linspace(-100.0, 100.0, H // 2), torch.linspace(-4.0, 4.0, H // 2)])
    g, h = torch.linspace(-2.0, 2.0, H), torch.linspace(1.0, -1.0, H) * min(1.0, math.exp(beta))
    auxiliary = [torch.linspace(-3.0, 3.0, H)] if gate.preactivations > 1 else []
    weighting = torch.linspace(1.0, 2.0, H, dtype=torch.float64)

    wide = [t.double().requires_grad_() for t in (z, g, h, *auxiliary)]
    gated = (wide[0], *wide[3:])
    logit = gate.log_value(*gated) - gate.log_complement(*gated)
    f, i = gate.value(*gated), torch.sigmoid(beta - logit)
    expected = f * wide[2] + i * torch.tanh(wide[1])
    gradients = torch.autograd.grad((expected * weighting).sum(), wide)
    # Where the logit is infinite, autograd meets 0·inf; nothing changes there.
    gradients = [torch.where(logit.isinf(), 0.0, v) if place == 0 else v for place, v in enumerate(gradients)]

    layer: Any = gatedrnn.JANET((2 + len(auxiliary)) * H, H, beta=beta, forget_gate=name)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.weight_ih_l0[:, : 2 * H] = torch.eye(2 * H)
        if auxiliary:
            layer.weight_ih_aux_l0[:, 2 * H :] = torch.eye(H)
    x = torch.cat([z, g, *auxiliary])[None, None].requires_grad_()
    state = h[None, None].clone().requires_grad_()
    output, _, states = layer(x, state, return_states="gates")
    torch.testing.assert_close(states["input"].flatten().double(), i, rtol=BETA, atol=BETA)
    torch.testing.assert_close(output.flatten().double(), expected, rtol=BETA, atol=BETA)
    found = torch.autograd.grad((output.double() * weighting).sum(), (x, state))
    slopes = [*found[0].flatten().split(H)]
    for actual, wanted in zip((slopes[0], slopes[1], found[1].flatten(), *slopes[2:]), gradients, strict=True):
        largest = wanted.abs().max().item()
        torch.testing.assert_close(actual.double(), wanted, rtol=BETA, atol=BETA * largest)
