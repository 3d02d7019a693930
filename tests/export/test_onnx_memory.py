"""Long memory in the exported file: 1−f is right relative to itself, and a stored value decays at its time scale."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mpmath
import onnx
import onnxruntime
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


def test_what_the_native_operator_loses(tmp_path: Path) -> None:
    """Its f is rounded, so 1−f is a multiple of 6e-8; beyond that nothing is forgotten. docs/onnx.md says so."""
    complements = [1e-4, 1e-6, 1e-9]
    layer = gatedrnn.LSTM(1, 3)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_ih_l0[3:6] = layer.forget_gate.inverse_complement(torch.tensor(complements, dtype=torch.float64))
    start, errors = (torch.zeros(1, 1, 3), torch.ones(1, 1, 3)), {}
    for exact in (False, True):
        _, _, c = run(exported(layer, tmp_path / "layer.onnx", exact=exact), torch.zeros(10_000, 1, 1), *start)
        scales = -10_000 / torch.log(c.flatten().double())
        errors[exact] = [abs(scale * y - 1) for scale, y in zip(scales.tolist(), complements, strict=True)]
    assert errors[True][0] < 1e-3 and errors[True][1] < 5e-2
    assert errors[False][1] > 0.01 and errors[False][2] == math.inf


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
