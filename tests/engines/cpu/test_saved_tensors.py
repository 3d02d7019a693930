"""What the backward pass reads comes through torch's saved_tensors_hooks: in any layout it is right, else it is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

from tests.engines.cpu.loop import Case, arguments, leaves, native, plain, run, scan

CASES = [
    Case("lstm", "refine", 5, 3, 4, 6, collect=True, ragged=True),
    Case("lstm", "fast", 5, 3, 4, 6, projection=3, reverse=True),
    Case("lstm_tied", "sigmoid", 20, 3, 40, 6, recompute=True),
    Case("gru", "refine", 5, 3, 4, 6),
    Case("janet", "softsign", 5, 3, 4, 6, bias=False),
]


def of_case(case: Case) -> str:
    return f"{case.cell}-{case.gate}"


def turned(t: Tensor) -> Tensor:
    """The same values with the dimensions the other way round in memory."""
    order = tuple(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order)


def padded(t: Tensor) -> Tensor:
    """The same values inside a larger tensor."""
    room = t.new_full([size + 3 for size in t.shape], 77)
    inside = room[tuple(slice(1, size + 1) for size in t.shape)]
    return inside.copy_(t)


def every_other(t: Tensor) -> Tensor:
    if t.dim() == 0:
        return t
    return torch.stack([t, torch.full_like(t, 77)], -1)[..., 0]


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "turned": turned,
    "padded": padded,
    "every other": every_other,
    "negative view": lambda t: t if t.dtype == torch.bool else torch._neg_view(-t),
    "copied": lambda t: t.clone(),
}


@contextmanager
def hooks(change: Callable[[Tensor], Tensor], only: int | None = None) -> Iterator[list[Tensor]]:
    """Every saved tensor, or the one with this number, comes back changed; the list of all that were saved."""
    saved: list[Tensor] = []

    def pack(t: Tensor) -> tuple[int, Tensor]:
        saved.append(t.detach())
        return len(saved) - 1, t.detach()

    def unpack(packed: tuple[int, Tensor]) -> Tensor:
        number, t = packed
        return change(t) if only is None or number == only else t

    with saved_tensors_hooks(pack, unpack):
        yield saved


@pytest.mark.parametrize("function", [native, plain], ids=["operator", "plain"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_any_layout(case: Case, layout: str, function: Callable[..., tuple[Tensor, ...]]) -> None:
    t = case.tensors()
    expected = run(case, function, t, torch.float64)
    with hooks(LAYOUTS[layout]) as saved:
        found = run(case, function, t, torch.float64)
    assert len(saved) > 7
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_offloading(case: Case) -> None:
    t = case.tensors()
    expected = run(case, native, t, torch.float64)
    with save_on_cpu():
        torch.testing.assert_close(run(case, native, t, torch.float64), expected, rtol=0, atol=0)
    # Compressed on the way: float32 there and back.
    with hooks(lambda t: t.float().double() if t.is_floating_point() else t):
        torch.testing.assert_close(run(case, native, t, torch.float64), expected, rtol=1e-5, atol=1e-5)


def small(t: Tensor) -> Tensor:
    return t[:-1] if t.dim() else t.expand(2)


WRONG: dict[str, Callable[[Tensor], Tensor]] = {
    "another dtype": lambda t: t.float() if t.is_floating_point() else t.to(torch.int16),
    "too small": small,
    "one dimension more": lambda t: t[None].expand(2, *t.shape),
    "on another device": lambda t: t.to("meta"),
    "sparse": lambda t: t.to_sparse(),
}


@pytest.mark.parametrize("function", [native, plain], ids=["operator", "plain"])
@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_another_tensor_is_an_error(case: Case, kind: str, function: Callable[..., tuple[Tensor, ...]]) -> None:
    """Every saved tensor by itself: an error that says what is wrong, before anything is read."""
    t = leaves(case.tensors(), torch.float64)
    every_one_is_refused(lambda: function(case, t)[0], WRONG[kind])


@pytest.mark.parametrize("operator", [True, False])
@pytest.mark.parametrize("kind", WRONG)
def test_another_tensor_is_an_error_for_packed_rows(kind: str, operator: bool) -> None:
    case = Case("gru", "fast", 5, 3, 4, 6, reverse=True)
    t = leaves(case.tensors(), torch.float64)
    data, sizes = torch.randn(8, 4, dtype=torch.float64, requires_grad=True), torch.tensor([3, 2, 2, 1])
    _, state, weights, _, _, *options = arguments(case, t)
    given = (data, state, weights, None, sizes, *options)
    every_one_is_refused(lambda: scan(given, operator)[0], WRONG[kind])


def every_one_is_refused(scan: Callable[[], Tensor], change: Callable[[Tensor], Tensor]) -> None:
    with hooks(lambda t: t) as saved:
        scan().sum().backward()
    tried = 0
    for number, value in enumerate(saved):
        if value.dim() == 0 and change in (WRONG["another dtype"], WRONG["sparse"]):
            continue  # the number of threads is a number in any dtype
        with hooks(change, number):
            output = scan().sum()
        with pytest.raises((RuntimeError, ValueError), match="size mismatch for|must be|batch_sizes must"):
            output.backward()
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("function", [native, plain], ids=["operator", "plain"])
@pytest.mark.parametrize("layout", ["turned", "padded", "negative view"])
def test_second_derivative(layout: str, function: Callable[..., tuple[Tensor, ...]]) -> None:
    case = Case("lstm", "fast", 3, 2, 2, 3)

    def penalty() -> tuple[Tensor, ...]:
        t = leaves(case.tensors(), torch.float64)
        wanted = [t["input"], t["weight_hh"], t["bias_ih"]]
        first = torch.autograd.grad(function(case, t)[0].sin().sum(), wanted, create_graph=True)
        return torch.autograd.grad(sum(g.pow(2).sum() for g in first), wanted)

    expected = penalty()
    with hooks(LAYOUTS[layout]):
        torch.testing.assert_close(penalty(), expected, rtol=1e-12, atol=1e-12)


def test_second_derivative_of_another_tensor_is_an_error() -> None:
    case = Case("gru", "fast", 3, 2, 2, 3)
    t = leaves(case.tensors(), torch.float64)
    wanted = [t["input"], t["weight_hh"]]

    def grow(t: Tensor) -> Tensor:
        return t[:1] if t.dim() == 1 and t.is_floating_point() else t  # a bias that would broadcast

    first = torch.autograd.grad(native(case, t)[0].sin().sum(), wanted)
    assert all(g.isfinite().all() for g in first)
    for name in ("bias_ih", "bias_hh"):
        t[name].requires_grad_(False)  # else torch sees that its gradient has another shape
    output = native(case, t)[0].sin().sum()
    with hooks(grow):
        first = torch.autograd.grad(output, wanted, create_graph=True)
    with pytest.raises(RuntimeError, match="size mismatch for a saved tensor"):
        torch.autograd.grad(sum(g.pow(2).sum() for g in first), wanted)
