"""time_scales on data: from the gate's values at every step, exact where these round to 1."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gatedrnn
from gatedrnn.layers.time_scales import QUANTILES
from tests.conformance.cases import GATED_CASES, Case, as_argument, random_state, spread
from tests.layers.test_long_memory import layer_with

T, B, I, H = 9, 4, 3, 5  # noqa: E741
LENGTHS = torch.tensor([9, 1, 6, 3])


@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_equal_those_of_the_gate_values(case: Case) -> None:
    """Of every layer and direction, with lengths and a state; up to 1e6, where log f still has digits."""
    torch.manual_seed(0)
    layer = case.layer(I, H, num_layers=2, bidirectional=True, batch_first=True)
    spread(layer)
    x, state = torch.randn(B, T, I, dtype=torch.float64), as_argument(random_state(layer, B))
    measured = gatedrnn.time_scales(layer, x, state, LENGTHS)
    f = layer(x, state, LENGTHS, return_states="gates")[2]["forget"].detach()
    assert list(measured) == ["l0", "l0_reverse", "l1", "l1_reverse"]
    for values, (mean, quantiles) in zip(f, measured.values(), strict=True):
        log_f = torch.log(values[torch.arange(T) < LENGTHS[:, None]])
        assert log_f.shape == (LENGTHS.sum(), H)
        torch.testing.assert_close(mean.clamp(max=1e6), (1 / log_f.mean(0).abs()).clamp(max=1e6), rtol=1e-8, atol=0)
        shares = torch.tensor(QUANTILES, dtype=torch.float64)
        scales = (1 / log_f.abs()).clamp(max=1e6)
        expected = torch.quantile(scales, shares, dim=0, interpolation="nearest")
        torch.testing.assert_close(quantiles.clamp(max=1e6), expected, rtol=1e-8, atol=0)
        assert not mean.requires_grad and not quantiles.requires_grad


@pytest.mark.parametrize("gate", ["sigmoid", "fast", "refine"])
def test_exact_where_f_rounds_to_1(gate: str) -> None:
    layer = layer_with(gate, [1e-3, 1e-9, 1e-20])
    mean, quantiles = gatedrnn.time_scales(layer, torch.randn(7, 2, 1))["l0"]
    expected = gatedrnn.time_scales(layer)["l0"]
    assert expected[2] > 1e19
    torch.testing.assert_close(mean, expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(quantiles, expected.expand(5, 3), rtol=1e-6, atol=0)


def test_packed_unbatched_and_torchs_own() -> None:
    theirs = nn.LSTM(I, H, 2, bidirectional=True, dropout=0.5)
    ours = gatedrnn.convert(nn.LSTM(I, H, 2, bidirectional=True, dropout=0.5), "sigmoid")
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(T, B, I)
    packed = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    expected = gatedrnn.time_scales(ours, x, lengths=LENGTHS)
    for other in (gatedrnn.time_scales(ours, packed), gatedrnn.time_scales(theirs, x, lengths=LENGTHS)):
        torch.testing.assert_close(other, expected)
    assert isinstance(theirs, nn.LSTM) and ours.training
    torch.testing.assert_close(gatedrnn.time_scales(ours, x[:, 0]), gatedrnn.time_scales(ours, x[:, :1]))


def test_without_a_bias_there_is_still_data() -> None:
    mean, _ = gatedrnn.time_scales(gatedrnn.GRU(I, H, bias=False), torch.zeros(T, B, I))["l0"]
    torch.testing.assert_close(mean, torch.full((H,), 1 / torch.log(torch.tensor(2.0)).item()))


def test_refusals() -> None:
    x = torch.randn(T, B, I)
    with pytest.raises(ValueError, match="NRU has no forget gate"):
        gatedrnn.time_scales(gatedrnn.NRU(I, H), x)
    with pytest.raises(TypeError, match="LSTMCell is a single step"):
        gatedrnn.time_scales(gatedrnn.LSTMCell(I, H), x)
    with pytest.raises(ValueError, match="GRU: hx and lengths need an input"):
        gatedrnn.time_scales(gatedrnn.GRU(I, H), lengths=LENGTHS)  # type: ignore[call-overload]


def test_modes_are_left_as_they_were() -> None:
    layer = gatedrnn.LSTM(2, 3)
    nn.utils.parametrizations.spectral_norm(layer, "weight_hh_l0")
    inner = layer.parametrizations.weight_hh_l0.eval()  # type: ignore[union-attr,operator]
    gatedrnn.time_scales(layer, torch.randn(4, 2, 2))
    assert layer.training and not inner.training


def test_an_empty_batch_is_refused() -> None:
    message = "GRU: time scales need at least one sequence, got an empty batch"
    with pytest.raises(ValueError, match=message):
        gatedrnn.time_scales(gatedrnn.GRU(2, 3), torch.randn(4, 0, 2))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_torch_layers_with_additions(kind: type[nn.LSTM] | type[nn.GRU]) -> None:
    """Hooks, parametrisations, attributes and subclasses: the layer is only read."""

    class Sub(kind):  # type: ignore[misc,valid-type]
        engine = "v8"

    torch.manual_seed(0)
    layer = Sub(I, H, num_layers=2, bidirectional=True)
    plain = kind(I, H, num_layers=2, bidirectional=True)
    plain.load_state_dict(layer.state_dict())
    layer.register_forward_hook(lambda *_: pytest.fail("it was called"))
    nn.utils.parametrizations.weight_norm(layer, "weight_hh_l0")
    x = torch.randn(T, B, I)
    found, expected = gatedrnn.time_scales(layer, x), gatedrnn.time_scales(gatedrnn.convert(plain, "sigmoid"), x)
    for key, (mean, quantiles) in expected.items():
        torch.testing.assert_close(found[key].mean, mean)
        torch.testing.assert_close(found[key].quantiles, quantiles)
    assert not isinstance(layer, gatedrnn.layers.RecurrentLayer)
