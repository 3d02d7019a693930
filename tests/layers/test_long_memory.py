"""Long memory, shown by rise and decay, not by standing still."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn.gates import GATES, resolve
from tests.layers.tolerances import LONG_MEMORY

#: One gate in every run, all of them in the slow one. The first has the steepest end.
GATE_PARAMETERS = [
    pytest.param(gate, marks=[] if gate == "fast" else [pytest.mark.slow]) for gate in sorted(GATES, key="fast".__ne__)
]


def layer_with(gate: str, complements: list[float], dtype: torch.dtype = torch.float32, **keywords: Any) -> Any:
    """A tied LSTM without weights, one unit per complement: z is the bias, whatever the input."""
    layer: Any = gatedrnn.LSTM(1, len(complements), tied=True, forget_gate=gate, dtype=dtype, **keywords)
    roots = resolve(gate).inverse_complement(torch.tensor(complements, dtype=torch.float64))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_ih_l0[: len(complements)] = roots[0] if isinstance(roots, tuple) else roots
    return layer


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("gate", GATE_PARAMETERS)
def test_rise_and_decay_over_a_hundred_thousand_steps(gate: str) -> None:
    """Unit 0 rises from 0 to a constant candidate with T = 1e8; unit 1 keeps a stored 1 with T = 1e7.

    With 1−f by subtraction the first would stay 0: f rounds to 1 in float32.
    """
    n, units = 100_000, 2
    layer = layer_with(gate, [1e-8, 1e-7])
    with torch.no_grad():
        layer.bias_ih_l0[units] = math.atanh(0.5)  # the candidate of unit 0 is 0.5, that of unit 1 is 0
    start = (torch.zeros(1, 1, units), torch.tensor([[[0.0, 1.0]]]))
    scales = gatedrnn.time_scales(layer)["l0"].double()
    torch.testing.assert_close(scales, torch.tensor([1e8, 1e7], dtype=torch.float64), rtol=1e-4, atol=0)
    with torch.no_grad():
        _, (_, c) = layer(torch.zeros(n, 1, 1), start)
    rise, decay = c.flatten().tolist()
    assert rise == pytest.approx(0.5 * -math.expm1(-n / 1e8), rel=LONG_MEMORY)
    assert decay == pytest.approx(math.exp(-n / 1e7), rel=LONG_MEMORY)
    assert 1 - decay == pytest.approx(-math.expm1(-n / 1e7), rel=0.2)  # and it does decay


@pytest.mark.parametrize("n", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["bfloat16", "autocast"])
@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("gate", GATE_PARAMETERS)
def test_16_bit_layers_decay_at_the_time_scale_of_the_rounded_bias(gate: str, mode: str, n: int) -> None:
    dtype = torch.bfloat16 if mode == "bfloat16" else torch.float32
    layer = layer_with(gate, [1e-6], dtype)
    scale = gatedrnn.time_scales(layer)["l0"].item()
    assert 2e5 < scale < 5e6
    start = (torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
        _, (_, c) = layer(torch.zeros(n, 1, 1, dtype=dtype), start)
    assert c.dtype == torch.float32
    assert c.item() == pytest.approx(math.exp(-n / scale), rel=LONG_MEMORY)
    assert 1 - c.item() == pytest.approx(-math.expm1(-n / scale), rel=0.05)
