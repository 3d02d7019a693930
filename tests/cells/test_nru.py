"""NRU: parameter counts, start, and a step worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import gatedrnn
from tests.layers.tolerances import SIGMAS


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((1, 128, 64, 4), 38_728),
        ((2, 128, 64, 4), 38_856),
        ((10, 128, 64, 4), 39_880),
        ((1, 512, 144, 4), 405_224),
    ],
)
def test_parameter_counts(sizes: tuple[int, ...], count: int) -> None:
    i, h, m, k = sizes
    for kind in (gatedrnn.NRU, gatedrnn.NRUCell):
        layer = kind(i, h, memory_size=m, heads=k, device="meta")
        assert sum(p.numel() for p in layer.parameters()) == count


def test_a_step_by_hand() -> None:
    """H = 1, M = 2, K = 2, s = 2, Python numbers only."""
    cell: Any = gatedrnn.NRUCell(1, 1, memory_size=2, heads=2, dtype=torch.float64)
    with torch.no_grad():
        for index, parameter in enumerate(cell.parameters()):
            values = torch.arange(parameter.numel(), dtype=torch.float64) * 0.37 + index
            parameter.copy_(torch.sin(values).view_as(parameter))
    w = {name: p.tolist() for name, p in cell.named_parameters()}
    x, h, m = [0.8], [0.5], [-0.3, 0.6]

    def affine(letter: str, u: list[float]) -> list[float]:
        return [
            sum(a * b for a, b in zip(row, u, strict=True)) + bias
            for row, bias in zip(w[f"W_{letter}"], w[f"b_{letter}"], strict=True)
        ]

    new_h = [max(0.0, v) for v in affine("h", x + h + m)]
    assert new_h[0] > 0
    u = new_h + m
    new_m = list(m)
    for sign, scale, direction in ((1, "a", "va"), (-1, "b", "vb")):
        strengths = affine(scale, u)
        p0, p1, q0, q1 = affine(direction, u)
        for k, row in enumerate([[p0 * q0, p0 * q1], [p1 * q0, p1 * q1]]):
            norm = (abs(row[0]) ** 5 + abs(row[1]) ** 5) ** 0.2
            for j in range(2):
                new_m[j] += sign * strengths[k] * row[j] / norm / 2
    state = (torch.tensor(h, dtype=torch.float64), torch.tensor(m, dtype=torch.float64))
    actual_h, actual_m = cell(torch.tensor(x, dtype=torch.float64), state)
    assert actual_h.tolist() == pytest.approx(new_h, rel=1e-12)
    assert actual_m.tolist() == pytest.approx(new_m, rel=1e-12)


def test_starts_as_torch_linear() -> None:
    """U(±1/√fan_in), weights and biases."""
    torch.manual_seed(0)
    layer: Any = gatedrnn.NRU(4, 60, memory_size=36, heads=4)
    for name, parameter in layer.named_parameters():
        fan_in = layer.get_parameter("W" + name[1:]).shape[1]
        bound = 1 / math.sqrt(fan_in)
        assert parameter.abs().max() <= bound
        assert abs(parameter.mean()) <= SIGMAS * bound / math.sqrt(3 * parameter.numel())
        if parameter.numel() > 50:
            assert parameter.abs().max() > 0.9 * bound


def test_the_heads_do_not_see_the_input() -> None:
    """With the hidden state cut off, the memory does not depend on x."""
    layer: Any = gatedrnn.NRU(2, 3, memory_size=8, heads=2)
    torch.nn.init.constant_(layer.W_h_l0, 0.0)
    first, second = (layer(torch.randn(4, 1, 2))[1][1] for _ in range(2))
    assert torch.equal(first, second)
    assert (first != 0).any()


@pytest.mark.parametrize("exponent", [-12, -9, -6, 0, 6, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_directions_have_norm_one_at_any_size(exponent: int, dtype: torch.dtype) -> None:
    """The fifth powers of what the outer product gives may leave float32; its norm may not."""
    cell: Any = gatedrnn.NRUCell(1, 2, memory_size=8, heads=2, dtype=dtype)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.b_a.fill_(1.0)
        cell.b_va.copy_(torch.arange(1.0, 9.0) * 10.0 ** (exponent / 2))
        cell.b_vb.copy_(torch.arange(1.0, 9.0))
        p, q = (torch.arange(1.0, 5.0), torch.arange(5.0, 9.0))
        rows = torch.outer(p, q).reshape(2, 8).double()
        expected = (rows / (rows**5).sum(-1, keepdim=True) ** 0.2).mean(0)
        _, m = cell(torch.zeros(1, 1, dtype=dtype))
    if exponent > -12:  # at −12 the eps of the authors, 1e-12, is of the size of the norm
        torch.testing.assert_close(m[0].double(), expected, rtol=1e-4, atol=0)
    assert torch.isfinite(m).all()
    assert m.abs().max() <= 1


@pytest.mark.parametrize("bias", [True, False])
def test_gradients_at_a_zero_direction_are_finite(bias: bool) -> None:
    """Without bias and state the outer product is zero, and so is its norm."""
    layer: Any = gatedrnn.NRU(2, 3, memory_size=8, heads=2, bias=bias, dtype=torch.float64)
    x = torch.zeros(4, 2, 2, dtype=torch.float64, requires_grad=True)
    output, (_, m) = layer(x)
    (output.sum() + m.sum()).backward()
    assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())
