"""NRU: parameter counts, start, and a step worked out by hand."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import gatedrnn
from gatedrnn.lab.tasks import Adding
from tests.layers.tolerances import SIGMAS

FLOAT32_MAX = torch.finfo(torch.float32).max


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


@pytest.mark.parametrize("relu", [True, False])
def test_a_step_by_hand(relu: bool) -> None:
    """H = 1, M = 2, K = 2, s = 2, Python numbers only."""
    cell: Any = gatedrnn.NRUCell(1, 1, memory_size=2, heads=2, relu=relu, dtype=torch.float64)
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
    negative: list[bool] = []
    for sign, scale, direction in ((1, "a", "va"), (-1, "b", "vb")):
        strengths = affine(scale, u)
        p0, p1, q0, q1 = affine(direction, u)
        rows = [[p0 * q0, p0 * q1], [p1 * q0, p1 * q1]]
        negative += [v < 0 for v in [*strengths, *rows[0], *rows[1]]]
        if relu:
            strengths, rows = [max(0.0, v) for v in strengths], [[max(0.0, v) for v in row] for row in rows]
        for k, row in enumerate(rows):
            norm = (abs(row[0]) ** 5 + abs(row[1]) ** 5) ** 0.2
            for j in range(2):
                new_m[j] += sign * strengths[k] * row[j] / (norm or 1.0) / 2
    assert any(negative) and not all(negative)
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


def _memory_after_writing(size: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """One step of a cell that writes with α = 1 and never erases: the memory, and the rows of its directions.

    The rows are multiples of ``size``; they are given in float64, before they are divided by their norms.
    """
    cell: Any = gatedrnn.NRUCell(1, 2, memory_size=8, heads=2, dtype=dtype)
    p, q = torch.arange(1.0, 5.0), torch.arange(5.0, 9.0)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.b_a.fill_(1.0)
        cell.b_va.copy_(torch.cat([p, q]) * math.sqrt(size))
        cell.b_vb.copy_(torch.cat([p, q]))
        _, m = cell(torch.zeros(1, 1, dtype=dtype))
    return m[0], size * torch.outer(p, q).reshape(2, 8).double()


@pytest.mark.parametrize("exponent", [-12, -9, -6, 0, 5, 6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_directions_have_norm_one(exponent: int, dtype: torch.dtype) -> None:
    """The fifth powers of small rows leave float32; their norms do not."""
    m, rows = _memory_after_writing(10.0**exponent, dtype)
    expected = (rows / (rows**5).sum(-1, keepdim=True) ** 0.2).mean(0)
    if exponent > -12:  # at −12 the eps of the authors, 1e-12, is of the size of the norm
        torch.testing.assert_close(m.double(), expected, rtol=1e-4, atol=0)
    assert torch.isfinite(m).all()
    assert m.abs().max() <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_row_whose_fifth_powers_leave_float32_counts_as_zero(dtype: torch.dtype) -> None:
    """In every dtype. The second row is the larger one and gets there first."""
    _, (small, large) = _memory_after_writing(1.0, dtype)
    limit = FLOAT32_MAX**0.2
    first, second = (float((row**5).sum() ** 0.2) for row in (small, large))
    for size, rows_left in ((0.999 * limit / second, 2), (1.001 * limit / second, 1), (1.001 * limit / first, 0)):
        m, _ = _memory_after_writing(size, dtype)
        left = [small / first, large / second][:rows_left]
        expected = sum(left, torch.zeros(8, dtype=torch.float64)) / 2
        torch.testing.assert_close(m.double(), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("exponent", [0, 2, 4, 4.6, 5, 6])
def test_a_step_is_that_of_float32_at_any_size_of_the_memory(exponent: float, relu: bool) -> None:
    """torch's own norms of order 5 in float32, infinite where the fifth powers are, as the authors take them."""
    torch.manual_seed(0)
    cell: Any = gatedrnn.NRUCell(2, 128, relu=relu)
    x, h, m = torch.rand(8, 2), torch.rand(8, 128), (torch.rand(8, 64) - 0.5) * 10.0**exponent
    given = m.clone().requires_grad_()
    actual = cell(x, (h, given))[1] - given

    plain = m.clone().requires_grad_()
    w = dict(cell.named_parameters())
    u = torch.cat([F.linear(torch.cat([x, h, plain], -1), w["W_h"], w["b_h"]).relu(), plain], -1)
    expected = torch.zeros_like(plain)
    zeros = []
    for sign, scale, direction in ((1, "a", "va"), (-1, "b", "vb")):
        p, q = F.linear(u, w[f"W_{direction}"], w[f"b_{direction}"]).chunk(2, -1)
        outer = torch.einsum("bi,bj->bij", p, q).reshape(8, 4, 64)
        strengths = F.linear(u, w[f"W_{scale}"], w[f"b_{scale}"])
        if relu:
            outer, strengths = outer.relu(), strengths.relu()
        rows = F.normalize(outer, p=5.0, dim=-1, eps=1e-12)
        zeros.append((rows == 0).all(-1))
        expected = expected + sign * (strengths.unsqueeze(-1) * rows).mean(-2)

    share = torch.stack(zeros).float().mean()
    assert (0.1 < share < 0.9) if exponent == 4.6 else share == (exponent > 4.6)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5 * 10.0**exponent)
    weight = torch.randn(8, 64)
    ours, theirs = (torch.autograd.grad((out * weight).sum(), m)[0] for out, m in ((actual, given), (expected, plain)))
    if exponent < 6:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    else:  # the fourth powers leave float32 too, and torch's gradient of the norm is inf/inf
        assert theirs.isnan().all() and not ours.any()


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_memory_of_a_fresh_layer_stops_growing(dtype: torch.dtype, relu: bool) -> None:
    """It grows in proportion to itself until no row is left, and then stays."""
    torch.manual_seed(0)
    layer: Any = gatedrnn.NRU(2, 128, relu=relu, dtype=dtype)
    with torch.no_grad():
        _, state = layer(torch.rand(1000, 16, 2, dtype=dtype))
        _, (_, later) = layer(torch.rand(500, 16, 2, dtype=dtype), state)
    largest = float(state[1].abs().max())
    assert 1e4 < largest < 1e5
    assert float(later.abs().max()) < 1.2 * largest


def _losses(steps: int, batch_size: int, relu: bool = True) -> Iterator[float]:
    """Training on the adding problem with the paper's optimiser: RMSprop 1e-3, gradients clipped to norm 1."""
    torch.manual_seed(0)
    task, generator = Adding(steps), torch.Generator().manual_seed(0)
    layer, head = gatedrnn.NRU(2, 128, relu=relu), torch.nn.Linear(128, 1)
    parameters = [*layer.parameters(), *head.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
    while True:
        batch = task.batch(batch_size, generator)
        loss = task.loss(head(layer(batch.input)[0][-1:]), batch.target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
        optimizer.step()
        yield loss.item()


def test_the_first_updates_on_long_sequences_do_not_diverge() -> None:
    """The outputs begin at the size of the memory, 1e4; from there they may only come down."""
    assert max(itertools.islice(_losses(steps=300, batch_size=4, relu=False), 6)) < 1e8


@pytest.mark.slow
def test_learns_the_adding_problem() -> None:
    """An answer that ignores the input has an error of 0.167."""
    window: deque[float] = deque(maxlen=25)
    for loss in itertools.islice(_losses(steps=300, batch_size=16), 800):
        window.append(loss)
        if len(window) == 25 and sum(window) / 25 < 0.03:
            return
    pytest.fail(f"the mean of the last 25 losses is {sum(window) / 25:.3g}")


@pytest.mark.parametrize("bias", [True, False])
def test_gradients_at_a_zero_direction_are_finite(bias: bool) -> None:
    """Without bias and state the outer product is zero, and so is its norm."""
    layer: Any = gatedrnn.NRU(2, 3, memory_size=8, heads=2, bias=bias, dtype=torch.float64)
    x = torch.zeros(4, 2, 2, dtype=torch.float64, requires_grad=True)
    output, (_, m) = layer(x)
    (output.sum() + m.sum()).backward()
    assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())
