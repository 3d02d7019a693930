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


RESET = {  # layers whose memory may exceed 1, and their options
    "LSTM": {},
    "JANET": {"beta": 15.0},
    "FastGRNN": {},
}


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("name", RESET)
def test_a_gate_that_closes_on_a_large_memory_leaves_the_digits_of_the_new_one(name: str) -> None:
    """One step from a memory of 1e5 with f between e^-30 and e^-8, and from 1 with f of e^-3 and above.

    Forward and backward against float64. With c + (i g − (1−f) c) alone the error is that of c, 1e5 times as large.
    """
    torch.manual_seed(0)
    units = 8
    z = torch.tensor([-30.0, -20.0, -12.0, -8.0, -3.0, 0.0, 3.0, 20.0])
    large = torch.tensor([1e5] * 4 + [1.0] * 4)
    layer: Any = getattr(gatedrnn, name)(1, units, **RESET[name])
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        if name == "FastGRNN":
            layer.b_z_l0.copy_(z)
            layer.b_h_l0.fill_(0.3)
        else:
            block = {"LSTM": 1, "JANET": 0}[name]
            layer.bias_ih_l0[block * units : (block + 1) * units] = z
            layer.bias_ih_l0[(block + 1) * units : (block + 2) * units] = 0.3
    found = {}
    for dtype in (torch.float32, torch.float64):
        memory = large.to(dtype).expand(1, 2, units).clone().requires_grad_()
        state = (torch.zeros(1, 2, units, dtype=dtype), memory) if name == "LSTM" else memory
        final = layer.to(dtype)(torch.zeros(1, 2, 1, dtype=dtype), state)[1]
        final = final[1] if name == "LSTM" else final
        (slope,) = torch.autograd.grad(final.sum(), memory)
        found[dtype] = final.detach().double(), slope.double()
    for float32, float64 in zip(found[torch.float32], found[torch.float64], strict=True):
        torch.testing.assert_close(float32, float64, rtol=1e-5, atol=0)  # the digits of e^z in float32
