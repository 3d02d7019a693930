"""FastGRNN starts as its authors' code, with φ(b_z) = σ(1) for every gate."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.gates import GATES
from tests.cells.equations import PHI
from tests.layers.tolerances import SIGMAS


@pytest.mark.parametrize("gate", GATES)
def test_start(gate: str) -> None:
    torch.manual_seed(0)
    layer: Any = gatedrnn.FastGRNN(30, 50, 2, bidirectional=True, forget_gate=gate, dtype=torch.float64)
    for name, parameter in layer.named_parameters():
        letter = name.rsplit("_l", 1)[0]
        if letter in ("W", "U", "W_aux", "U_aux"):
            n = parameter.numel()
            assert abs(parameter.mean().item()) <= SIGMAS * 0.1 / math.sqrt(n)
            assert abs(parameter.std().item() - 0.1) <= SIGMAS * 0.1 / math.sqrt(2 * n)
            assert parameter.abs().max() > 0.25  # normal, not uniform
        elif letter in ("b_h", "zeta", "nu"):
            assert (parameter == {"b_h": 1.0, "zeta": 1.0, "nu": -4.0}[letter]).all()
        elif letter == "b_z":
            aux = [torch.zeros_like(parameter)] if gate == "refine" else []
            value = PHI[gate](parameter, *aux)
            torch.testing.assert_close(value, torch.full_like(value, 1 / (1 + math.exp(-1))), rtol=1e-12, atol=0)
        else:
            assert letter == "b_z_aux"
            assert (parameter == 0).all()


def test_parameter_count() -> None:
    """One W and one U for both products: H(I+H) + 2H + 2."""
    assert sum(p.numel() for p in gatedrnn.FastGRNN(5, 7).parameters()) == 7 * (5 + 7) + 2 * 7 + 2
    assert gatedrnn.FastGRNN(5, 7).zeta_l0.shape == (1,)
