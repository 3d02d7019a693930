"""explain: text about the engine that will run, for every form of input, without side effects."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gatedrnn
from gatedrnn.engines import ENGINES
from tests.conformance.cases import AUX_CASES, Case

I, H, T, B = 3, 4, 5, 2  # noqa: E741


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_text(case: Case, engine: str) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=True, engine=engine)
    x = torch.randn(T, B, I, dtype=torch.float64)
    for given in (x, x[:, 0], pack_padded_sequence(x, torch.tensor([5, 2]))):
        first, *others = gatedrnn.explain(layer, given).splitlines()
        name, reason = first.split(": ", 1)
        assert name in ENGINES
        assert reason.endswith("(requested)" if engine != "auto" else "(the first that can run this)")
        assert {line.split(":")[0].removeprefix("not ") for line in others} == set(ENGINES) - {name}
        assert all(line.startswith("not ") and len(line.split(": ", 1)[1]) > 3 for line in others)
    if engine == "reference":
        assert first.startswith("reference: the loop over time in plain PyTorch")


@pytest.mark.parametrize("case", AUX_CASES, ids=str)
def test_single_steps(case: Case) -> None:
    """Told as of a layer: the same engine for the same cell and gate."""
    step, layer = case.step(I, H, engine="auto"), case.layer(I, H, engine="auto")
    x = torch.randn(B, I, dtype=torch.float64)
    expected = gatedrnn.explain(layer, x[None])
    assert gatedrnn.explain(step, x) == gatedrnn.explain(step, x[0]) == expected
    with pytest.raises(ValueError, match="Expected input to be 1D or 2D, got 3D"):
        gatedrnn.explain(step, x[None])
    with pytest.raises(TypeError, match="Expected input to be a Tensor, got PackedSequence"):
        gatedrnn.explain(step, pack_padded_sequence(x[None], torch.tensor([1, 1])))


def test_no_side_effects() -> None:
    """No numbers drawn, DropConnect included; batch_first is understood."""
    layer: Any = gatedrnn.LSTM(I, H, weight_dropout=0.5, batch_first=True)
    before = torch.get_rng_state()
    gatedrnn.explain(layer, torch.zeros(B, T, I))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(p.grad is None for p in layer.parameters())


@pytest.mark.parametrize("kind", [gatedrnn.LSTM, gatedrnn.LSTMCell])
def test_parametrised_weights_do_not_change(kind: type[nn.Module]) -> None:
    layer: Any = kind(I, H)
    name = next(name for name, _ in layer.named_parameters() if name.startswith("weight_hh"))
    plain = gatedrnn.explain(layer, torch.zeros(B, I))
    nn.utils.parametrizations.spectral_norm(layer, name)
    values = {name: value.clone() for name, value in layer.state_dict().items()}
    assert gatedrnn.explain(layer, torch.zeros(B, I)) == plain
    torch.testing.assert_close(layer.state_dict(), values, rtol=0, atol=0)
    assert all(module.training for module in layer.modules())


def test_bad_input() -> None:
    layer: Any = gatedrnn.LSTM(I, H)
    with pytest.raises(TypeError, match="LSTM"):
        gatedrnn.explain(nn.LSTM(I, H), torch.zeros(T, B, I))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expected 3, got 9"):
        gatedrnn.explain(layer, torch.zeros(T, B, 9))
    with pytest.raises(ValueError, match="4D"):
        gatedrnn.explain(layer, torch.zeros(1, T, B, I))
