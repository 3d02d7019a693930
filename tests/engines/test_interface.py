"""How an engine is chosen, and what explain says about it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gatedrnn
from gatedrnn import engines
from gatedrnn.engines import ENGINES, Engine, Scan, ScanResult


class _Picky(Engine):
    """Serves short sequences only."""

    name = "picky"

    def refuses(self, scan: Scan) -> str | None:
        return "more than 3 steps" if len(scan.input) > 3 else None

    def describe(self, scan: Scan) -> str:
        return "a test engine"

    def run(self, scan: Scan) -> ScanResult:
        output, state, collected = ENGINES["reference"].run(scan)
        return ScanResult(output + 100.0, state, collected)


@pytest.fixture
def picky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two engines, the picky one preferred."""
    reference = ENGINES["reference"]
    # A new dictionary: entries put back one by one would stand in another order, which is that of preference.
    monkeypatch.setattr(engines, "ENGINES", {"picky": _Picky(), "reference": reference})


@pytest.mark.usefixtures("picky")
def test_auto_takes_the_first_that_serves() -> None:
    layer: Any = gatedrnn.LSTM(2, 3)
    short, long = torch.randn(3, 1, 2), torch.randn(4, 1, 2)
    assert layer(short)[0].min() > 50
    assert layer(long)[0].max() < 50
    assert gatedrnn.explain(layer, short).splitlines() == [
        "picky: a test engine (the first that can run this)",
        "not reference: not needed",
    ]
    assert gatedrnn.explain(layer, long).splitlines() == [
        "reference: the loop over time in plain PyTorch (the first that can run this)",
        "not picky: more than 3 steps",
    ]


@pytest.mark.usefixtures("picky")
def test_an_engine_asked_for_runs_or_raises() -> None:
    layer: Any = gatedrnn.LSTM(2, 3, engine="picky")
    assert layer(torch.randn(3, 1, 2))[0].min() > 50
    with pytest.raises(RuntimeError, match="'picky' cannot run this: more than 3 steps"):
        layer(torch.randn(4, 1, 2))
    with pytest.raises(RuntimeError, match="more than 3 steps"):
        gatedrnn.explain(layer, torch.randn(4, 1, 2))
    reference = gatedrnn.LSTM(2, 3, engine="reference")
    assert reference(torch.randn(3, 1, 2))[0].max() < 50
    assert gatedrnn.explain(reference, torch.randn(3, 1, 2)).splitlines()[1] == (
        "not picky: engine='reference' was requested"
    )


@pytest.mark.usefixtures("picky")
def test_every_layer_and_direction_asks() -> None:
    """Not only the first: every one puts 100 on top."""
    _, _, collected = gatedrnn.GRU(2, 3, 2, bidirectional=True)(torch.randn(3, 1, 2), return_states=True)
    output, _ = gatedrnn.GRU(2, 3, 2, bidirectional=True)(torch.randn(3, 1, 2))
    assert output.shape == (3, 1, 6)
    assert output.min() > 50
    assert collected["h"].max() < 50


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown engine 'warp'; known engines: auto, .*reference"):
        gatedrnn.LSTM(2, 3, engine="warp")
    with pytest.raises(ValueError, match="warp"):
        engines.check_name("warp")
    for name in ("auto", *ENGINES):
        engines.check_name(name)
