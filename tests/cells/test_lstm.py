"""The LSTM cell where its forms differ: tied, saturated, projected."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.cells import LSTMEquations
from gatedrnn.gates import GATES, resolve
from tests.cells.equations import PHI


def test_row_blocks() -> None:
    assert LSTMEquations().row_blocks() == ("i", "f", "g", "o")
    assert LSTMEquations(tied=True).row_blocks() == ("f", "g", "o")
    assert LSTMEquations(proj_size=2).state_sizes(5) == (2, 5)
    assert LSTMEquations().state_sizes(5) == (5, 5)


@pytest.mark.parametrize("gate", GATES)
def test_tied_is_untied_with_the_input_gate_set_to_the_complement(gate: str) -> None:
    """σ(z_i) = 1−φ(b_f) by its bias, without weights."""
    torch.manual_seed(0)
    tied: Any = gatedrnn.LSTM(2, 3, tied=True, forget_gate=gate, dtype=torch.float64)
    untied: Any = gatedrnn.LSTM(2, 3, forget_gate=gate, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in tied.named_parameters():
            if parameter.dim() > 1 and "aux" in name:
                parameter.zero_()
            if parameter.dim() > 1 and "aux" not in name:
                parameter[:3] = 0  # no weights on the forget gate
            own = untied.get_parameter(name)
            if "aux" in name:
                own.copy_(parameter)
            else:
                own[3:] = parameter
                own[:3] = 0
        z = [(tied.bias_ih_l0 + tied.bias_hh_l0)[:3]]
        if gate == "refine":
            z.append(tied.bias_ih_aux_l0 + tied.bias_hh_aux_l0)
        f = PHI[gate](*z)
        untied.bias_ih_l0[:3] = torch.log((1 - f) / f)
    x = torch.randn(6, 2, 2, dtype=torch.float64)
    torch.testing.assert_close(tied(x), untied(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("gate", GATES)
def test_a_forgetting_so_slow_that_f_rounds_to_one_still_moves(gate: str, tied: bool) -> None:
    """One step with 1−f = 1e-10 in float32: c changes by 1e-10, and the gradient reaches the forget bias."""
    cell: Any = gatedrnn.LSTMCell(1, 1, tied=tied, forget_gate=gate)
    root = resolve(gate).inverse_complement(torch.tensor([1e-10], dtype=torch.float64))
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        index = 0 if tied else 1
        cell.bias_ih[index] = (root[0] if isinstance(root, tuple) else root).item()
        cell.bias_ih[index + 1] = 20.0  # the candidate is 1
        if not tied:
            cell.bias_ih[0] = -200.0  # the input gate is closed
    memory = torch.zeros(1, 1) if tied else torch.full((1, 1), 1e-3)
    _, c = cell(torch.zeros(1, 1), (torch.zeros(1, 1), memory))
    if tied:
        assert c.item() == pytest.approx(1e-10, rel=1e-3)
    (slope,) = torch.autograd.grad(c.sum(), cell.bias_ih)
    assert slope[index] != 0


@pytest.mark.parametrize("gate", GATES)
def test_extreme_preactivations_are_finite(gate: str) -> None:
    """Values and gradients, also where sinh overflows."""
    for scale in (1e2, 1e20, 1e38):
        cell: Any = gatedrnn.LSTMCell(1, 2, forget_gate=gate)
        with torch.no_grad():
            for sign, bias in ((1, cell.bias_ih), (-1, cell.bias_hh)):
                bias.copy_(torch.tensor([sign * scale / 4] * 4 + [scale, -scale, scale / 2, -scale / 2]))
        h, c = cell(torch.ones(1, 1), (torch.ones(1, 2), torch.ones(1, 2)))
        (h + c).sum().backward()
        assert torch.isfinite(h).all()
        assert torch.isfinite(c).all()
        assert all(torch.isfinite(p.grad).all() for p in cell.parameters())
