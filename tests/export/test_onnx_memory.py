"""Long memory in the exported file: 1−f is right relative to itself, and a stored value decays at its time scale."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import pytest
import torch

import gatedrnn
from gatedrnn.export import onnx_functions
from tests.export.running import run, session
from tests.layers.test_long_memory import layer_with


def exported(layer: Any, path: Path, **options: Any) -> Any:
    units = layer.hidden_size
    start = (torch.zeros(1, 2, units), torch.zeros(1, 2, units))
    gatedrnn.export.onnx(layer, (torch.zeros(3, 2, 1), start), path, **options)
    return session(path)


@pytest.mark.parametrize("gate", ["fast", *(pytest.param(g, marks=pytest.mark.slow) for g in ("sigmoid", "refine"))])
def test_what_is_forgotten_in_a_step_and_in_ten_thousand(gate: str, tmp_path: Path) -> None:
    """Units with 1−f = 1e-6 and 1e-9 rise from 0 to a candidate of ½; one with T = 1e4 keeps a stored 1."""
    layer = layer_with(gate, [1e-6, 1e-9, -math.expm1(-1e-4)])
    with torch.no_grad():
        layer.bias_ih_l0[3:5] = math.atanh(0.5)
    running = exported(layer, tmp_path / "layer.onnx")
    start = torch.zeros(1, 1, 3), torch.tensor([[[0.0, 0.0, 1.0]]])
    _, _, c = run(running, torch.zeros(1, 1, 1), *start)
    assert (c.flatten()[:2].double() / 0.5).tolist() == pytest.approx([1e-6, 1e-9], rel=1e-4)
    steps = 10_000
    _, _, c = run(running, torch.zeros(steps, 1, 1), *start)
    assert c.flatten()[2].item() == pytest.approx(math.exp(-steps / 1e4), rel=1e-3)


@pytest.mark.slow
def test_what_the_native_operators_lose(tmp_path: Path) -> None:
    """GRU: from 0 towards a candidate of ½ with 1−f = 1e-6 and 1e-9. LSTM: likewise with i = σ(−16) and σ(−20).

    The losses are those in docs/onnx.md: GRU forms 1−f by subtraction, LSTM's sigmoid is wrong below −16.
    """
    gru, lstm = gatedrnn.GRU(1, 2), gatedrnn.LSTM(1, 2)
    with torch.no_grad():
        for parameter in (*gru.parameters(), *lstm.parameters()):
            parameter.zero_()
        gru.bias_ih_l0[2:4] = gru.forget_gate.inverse_complement(torch.tensor([1e-6, 1e-9], dtype=torch.float64))
        lstm.bias_ih_l0[0:2] = torch.tensor([-16.0, -20.0])
        lstm.bias_ih_l0[4:6] = gru.bias_ih_l0[4:6] = math.atanh(0.5)
    smallest = {gru: [1e-6, 1e-9], lstm: [1 / (1 + math.exp(16)), 1 / (1 + math.exp(20))]}
    lost = {gru: [0.01, 1.0], lstm: [0.1, 1.0]}
    for layer, right in smallest.items():
        for exact in (True, False):
            path = tmp_path / "layer.onnx"
            zero = torch.zeros(1, 2, 2)
            gatedrnn.export.onnx(
                layer, (torch.zeros(3, 2, 1), (zero, zero) if layer is lstm else zero), path, exact=exact
            )
            starts = [torch.zeros(1, 1, 2)] * (2 if layer is lstm else 1)
            *_, memory = run(session(path), torch.zeros(1, 1, 1), *starts)
            errors = [abs(m / 0.5 / y - 1) for m, y in zip(memory.flatten().tolist(), right, strict=True)]
            if exact:
                assert max(errors) < 1e-4
            else:
                assert all(error >= least for error, least in zip(errors, lost[layer], strict=True)), errors


#: mpmath's function of the same name, and points: near 0, where the functions cancel, and far from it.
RIGHT = {"sigmoid": lambda s: 1 / (1 + mpmath.exp(-s))} | {
    name: getattr(mpmath, name) for name in ("expm1", "log1p", "sinh", "cosh", "asinh")
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions_are_right_relative_to_themselves_in_onnxruntime(dtype: torch.dtype, tmp_path: Path) -> None:
    class Functions(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [getattr(onnx_functions, name)(x) for name in RIGHT]

    positive = torch.cat([torch.logspace(-30, 0, 31), torch.linspace(0.05, 30, 41)]).to(dtype)
    x = torch.cat([positive, -positive])
    gatedrnn.export.onnx(Functions(), x, tmp_path / "functions.onnx")
    with mpmath.workdps(50):
        for name, found in zip(RIGHT, run(session(tmp_path / "functions.onnx"), x), strict=True):
            for z, y in zip(x.tolist(), found.tolist(), strict=True):
                if name == "log1p" and z <= -1:
                    continue
                right = RIGHT[name](mpmath.mpf(z))
                assert abs(y - right) <= 6 * torch.finfo(dtype).eps * abs(right), f"{name}({z})"
