"""Threads, forks and the floating-point mode of the caller."""

from __future__ import annotations

import multiprocessing
import os

import pytest
import torch

from gatedrnn.engines.cpu import library
from tests.engines.cpu.loop import CELLS, Case, native, run, worst

BIG = {"steps": 20, "batch": 33, "inputs": 5, "hidden": 70}  # enough work for several threads


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 64])
@pytest.mark.parametrize("cell", CELLS)
def test_any_number_of_threads(cell: str, count: int) -> None:
    torch.set_num_threads(count)
    for ragged in (False, True):
        error, name = worst(Case(cell, "fast", ragged=ragged, **BIG))
        assert error < 1e-10, name


@pytest.mark.parametrize("count", [1, 2, 64])
def test_same_bits_every_time(count: int) -> None:
    torch.set_num_threads(count)
    case = Case("lstm", "fast", dtype=torch.float32, **BIG)
    first = run(case, native, case.tensors(), torch.float32)
    for _ in range(5):
        again = run(case, native, case.tensors(), torch.float32)
        assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize(
    "options", [{}, {"ragged": True, "reverse": True}, {"recompute": True}, {"inputs": 40}, {"collect": True}]
)
@pytest.mark.parametrize("cell", CELLS)
def test_threads_that_share_a_row_give_the_bits_of_one(cell: str, options: dict[str, object]) -> None:
    """With fewer rows than threads the threads share the hidden units; no sum is cut differently for it."""
    for batch, count in ((1, 2), (2, 5), (1, 64)):
        case = Case(cell, "fast", **{"steps": 60, "batch": batch, "hidden": 130, "dtype": torch.float32, **options})
        torch.set_num_threads(1)
        alone = run(case, native, case.tensors(), torch.float32)
        torch.set_num_threads(count)
        shared = run(case, native, case.tensors(), torch.float32)
        differing = [name for name in alone if not torch.equal(alone[name], shared[name])]
        # The backward cuts the batch into as many parts as there are threads, and sums their weight gradients.
        assert [name for name in differing if batch == 1 or not name.startswith("grad")] == []


@pytest.mark.parametrize(
    "options", [{"ragged": True, "reverse": True, "inputs": 40}, {"recompute": True, "collect": True}]
)
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell != "nru"])
def test_threads_that_share_large_weights_give_the_bits_of_one(cell: str, options: dict[str, object]) -> None:
    """Few rows and weights of more than 8 MB: the threads share the hidden units, forward and backward."""
    case = Case(cell, "refine", **{"steps": 10, "batch": 3, "hidden": 1030, "dtype": torch.float32, **options})
    t, found = case.tensors(), {}
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found[count] = run(case, native, t, torch.float32)
    for count in (2, 3):
        assert [name for name, value in found[1].items() if not torch.equal(value, found[count][name])] == []


def test_borrowed_and_own_threads_give_the_same_bits() -> None:
    torch.set_num_threads(2)
    case = Case("lstm", "fast", dtype=torch.float32, **BIG)
    borrowed = run(case, native, case.tensors(), torch.float32)
    try:
        library.load().gatedrnn_borrow_threads(None, None, None)
        own = run(case, native, case.tensors(), torch.float32)
    finally:
        library.load().gatedrnn_borrow_threads(*library.torch_threads())
    assert all(torch.equal(borrowed[name], own[name]) for name in own)


def test_backward_with_another_number_of_threads() -> None:
    case = Case("lstm", "fast", **BIG)
    t = {n: v if v is None else v.requires_grad_() for n, v in case.tensors().items()}
    torch.set_num_threads(2)
    loss = native(case, t)[0].pow(2).sum()
    expected = torch.autograd.grad(loss, t["weight_hh"], retain_graph=True)
    torch.set_num_threads(1)
    found = torch.autograd.grad(loss, t["weight_hh"])
    assert torch.equal(expected[0], found[0])


def in_child(queue: multiprocessing.Queue) -> None:
    # torch's own thread pool does not survive a fork; the library's threads must not depend on it.
    torch.set_num_threads(1)
    case = Case("lstm", "fast", **BIG)
    queue.put({name: value.numpy() for name, value in run(case, native, case.tensors(), torch.float64).items()})


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_after_fork() -> None:
    torch.set_num_threads(2)
    case = Case("lstm", "fast", **BIG)
    expected = run(case, native, case.tensors(), torch.float64)  # the library has run threads before the fork
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    found = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    for name, value in expected.items():
        torch.testing.assert_close(torch.from_numpy(found[name]), value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("flush", [False, True])
def test_denormal_mode_is_restored(flush: bool) -> None:
    tiny = torch.tensor([1e-40])
    torch.set_flush_denormal(flush)
    try:
        run(Case(**BIG), native, Case(**BIG).tensors(), torch.float64)
        assert (tiny * 1.0).item() == (0.0 if flush else tiny.item())
    finally:
        torch.set_flush_denormal(False)


def test_denormals_are_flushed_inside() -> None:
    """A gradient that decays through the denormal range ends at zero."""
    case = Case("lstm_tied", "sigmoid", 400, 2, 1, 8, dtype=torch.float32, scale=0.1)
    t = {n: v if v is None else v.float().requires_grad_() for n, v in case.tensors().items()}
    native(case, t)[0][-1].sum().backward()
    gradient = t["input"].grad.abs()
    assert gradient[-1].max() > 0
    small = gradient[(gradient > 0) & (gradient < torch.finfo(torch.float32).tiny)]
    assert small.numel() == 0
