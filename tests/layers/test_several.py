"""Layers in several processes: DDP, FSDP2, torch.multiprocessing, and after a fork."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

import gatedrnn

from . import several

BOUND = 120.0  # seconds: what takes longer hangs


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_processes_train_as_one(kind: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    context = mp.spawn(several.in_process, (2, kind, engine, str(tmp_path)), nprocs=2, join=False)  # type: ignore[no-untyped-call]
    assert context.join(BOUND) or context.join(BOUND)
    ours, theirs = torch.load(tmp_path / "weights.pt", weights_only=True), several.trained(engine)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=0, atol=1e-12)  # float64, sums in another order


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_layer_is_sent_to_another_process(method: str) -> None:
    layer, x = gatedrnn.LSTM(3, 5, forget_gate="fast"), torch.randn(4, 2, 3)
    context = mp.get_context(method)
    replies = context.SimpleQueue()
    process = context.Process(target=several.answer, args=(layer, x, replies))
    process.start()
    found = replies.get()
    process.join(BOUND)
    assert process.exitcode == 0
    assert found == _here(layer, x)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # Python's, where threads exist
def test_after_a_fork_that_follows_use_of_the_engine() -> None:
    layer, x = gatedrnn.LSTM(3, 5, forget_gate="fast"), torch.randn(4, 2, 3)
    before = _here(layer, x)
    replies = mp.get_context("fork").SimpleQueue()
    process = mp.get_context("fork").Process(target=several.answer, args=(layer, x, replies))
    process.start()
    process.join(BOUND)
    assert process.exitcode == 0
    assert replies.get() == before == _here(layer, x)


def _here(layer: gatedrnn.LSTM, x: torch.Tensor) -> tuple[float, float]:
    layer.zero_grad()
    layer(x)[0].sum().backward()
    assert layer.weight_hh_l0.grad is not None
    return layer(x)[0].sum().item(), layer.weight_hh_l0.grad.sum().item()
