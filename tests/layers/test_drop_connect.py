"""The mask of DropConnect: its law, its scale and its gradient, wherever it is drawn."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from gatedrnn.layers.drop_connect import drop_entries

SIGMAS = 5
SHAPE = (401, 263)  # an odd number of entries: the last one has half a random number of 64 bits


def drawn(p: float, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return drop_entries(torch.ones(SHAPE), p)


def share(p: float, n: int) -> Any:
    return pytest.approx(p, abs=SIGMAS * math.sqrt(p * (1 - p) / n) + 1e-12)


@pytest.mark.parametrize("p", [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1 - 1e-10, 1.0])
def test_law_and_scale(p: float) -> None:
    mask = drawn(p)
    dropped = mask == 0
    assert dropped.double().mean().item() == share(p, mask.numel())
    if p < 1:
        assert torch.equal(mask[~dropped], torch.full_like(mask[~dropped], 1 / (1 - p)))


def test_entries_are_independent() -> None:
    """Next to each other, where two entries share a random number, along columns, and in the next draw."""
    p = 0.3
    first, second = drawn(p) == 0, drop_entries(torch.ones(SHAPE), p) == 0
    flat = first.flatten()
    pairs = [(flat[0:-1:2], flat[1::2]), (flat[1:-1:2], flat[2::2]), (first[1:], first[:-1]), (first, second)]
    for one, other in pairs:
        assert (one & other).double().mean().item() == share(p * p, one.numel())


def test_seed_and_gradient() -> None:
    weight = torch.randn(SHAPE, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(7)
    result = drop_entries(weight, 0.4)
    mask = drawn(0.4, seed=7).double()
    torch.testing.assert_close(result, weight * mask, rtol=1e-7, atol=0)
    (gradient,) = torch.autograd.grad(result.sum(), weight)
    torch.testing.assert_close(gradient, mask, rtol=1e-7, atol=0)
    assert not torch.equal(drop_entries(weight, 0.4), result)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_types(dtype: torch.dtype) -> None:
    assert set(drop_entries(torch.ones(50, 50, dtype=dtype), 0.5).flatten().tolist()) == {0.0, 2.0}


def test_under_vmap_and_when_compiled() -> None:
    ensemble = torch.func.vmap(lambda w: drop_entries(w, 0.3), randomness="different")(torch.ones(3, *SHAPE))
    torch.compiler.reset()
    compiled = torch.compile(lambda w: drop_entries(w, 0.3), fullgraph=True, backend="aot_eager")(torch.ones(SHAPE))
    for mask in (*ensemble, compiled):
        assert (mask == 0).double().mean().item() == share(0.3, mask.numel())
    assert not torch.equal(ensemble[0], ensemble[1])
