"""Single steps by the engines: the same numbers as the reference engine's, and every change of the weights is noticed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.conformance.cases import ALL_CASES, CELL_CASES, Case, as_argument, as_tuple, spread
from tests.layers.tolerances import EQUATIONS, assert_close

I, H, B = 3, 20, 5  # noqa: E741


def chained(step: Any, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Any, ...]:
    """Three steps, and the gradients of a loss on all of them."""
    leaves = [x, *state, *step.parameters()]
    current, loss, results = as_argument(state), torch.zeros((), dtype=x.dtype), []
    for x_t in x:
        current = step(x_t, current)
        results += as_tuple(current)
        loss = loss + sum(s.sin().sum() for s in as_tuple(current))
    return *results, *torch.autograd.grad(loss, leaves)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("batch", [1, B])
@pytest.mark.parametrize("case", ALL_CASES, ids=str)
def test_equals_the_reference(case: Case, batch: int, dtype: torch.dtype) -> None:
    step = case.step(I, H, dtype=dtype)
    spread(step)
    torch.manual_seed(0)
    x = torch.randn(3, batch, I, dtype=dtype, requires_grad=True)
    sizes = step.cell.state_sizes(H)
    state = tuple(torch.randn(batch, size, dtype=dtype, requires_grad=True) for size in sizes)
    expected = chained(step, x, state)
    step.engine = "auto"
    assert_close(chained(step, x, state), expected, EQUATIONS, dtype)
    with torch.no_grad():
        found = as_tuple(step(x[0], as_argument(state)))
        assert_close(found, expected[: len(state)], EQUATIONS, dtype)
        single = as_tuple(step(x[0, 0], as_argument(tuple(s[0] for s in state))))
        assert_close(single, tuple(s[0] for s in found), EQUATIONS, dtype)


@pytest.mark.parametrize("case", CELL_CASES, ids=str)
def test_every_change_of_the_weights_is_noticed(case: Case) -> None:
    """In place, through .data, NumPy and shared memory, none of which torch counts as a change."""
    step = case.step(I, H, engine="auto", dtype=torch.float32)
    spread(step)
    x, weight = torch.randn(B, I), next(step.parameters())
    state = as_argument(tuple(torch.randn(B, size) for size in step.cell.state_sizes(H)))

    def agrees() -> bool:
        step.engine = "auto"
        found = as_tuple(step(x, state))[0]
        step.engine = "reference"
        return torch.allclose(found, as_tuple(step(x, state))[0], atol=1e-5)

    before = as_tuple(step(x, state))[0]
    with torch.no_grad():
        for change in (
            lambda: weight.mul_(1.5),
            lambda: weight.data.mul_(-1.2),
            lambda: weight.detach().numpy().__imul__(0.7),
            lambda: weight.data.share_memory_().mul_(1.4),
            lambda: setattr(weight, "data", torch.randn_like(weight)),
            lambda: setattr(weight, "data", torch.randn(*weight.shape[::-1]).T),
        ):
            change()
            assert agrees()
            after = as_tuple(step(x, state))[0]
            assert not torch.allclose(after, before)
            before = after
