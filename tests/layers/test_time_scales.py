"""time_scales: −1/log φ(b), of our layers and torch's."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import gatedrnn
from gatedrnn.gates import GATES, resolve
from gatedrnn.inits import Chrono, Constant
from tests.cells.equations import PHI
from tests.conformance.cases import CELL_CASES, GATED_CASES, Case
from tests.layers.tolerances import BIAS

I, H = 3, 5  # noqa: E741


@pytest.mark.parametrize("value", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("case", GATED_CASES, ids=str)
def test_value_of_every_layer_and_step(case: Case, value: float) -> None:
    layer = case.layer(I, H, num_layers=2, bidirectional=True, forget_init=Constant(value))
    scales = gatedrnn.time_scales(layer)
    assert list(scales) == ["l0", "l0_reverse", "l1", "l1_reverse"]
    scales |= {"step": gatedrnn.time_scales(case.step(I, H, forget_init=Constant(value)))["l0"]}
    for scale in scales.values():
        expected = torch.full((H,), -1 / math.log(value), dtype=torch.float64)
        torch.testing.assert_close(scale, expected, rtol=1e-11, atol=0)
        assert not scale.requires_grad


@pytest.mark.parametrize("gate", GATES)
def test_both_biases_and_both_preactivations_count(gate: str) -> None:
    torch.manual_seed(0)
    layer: Any = gatedrnn.GRU(I, H, forget_gate=gate, dtype=torch.float64)
    z = [(layer.bias_ih_l0 + layer.bias_hh_l0)[H : 2 * H]]
    if gate == "refine":
        z.append(layer.bias_ih_aux_l0 + layer.bias_hh_aux_l0)
    expected = -1 / torch.log(PHI[gate](*z))
    torch.testing.assert_close(gatedrnn.time_scales(layer)["l0"], expected.detach(), rtol=1e-11, atol=0)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layers_of_torch(kind: str) -> None:
    torch.manual_seed(0)
    theirs = getattr(nn, kind)(I, H, 2, bidirectional=True)
    torch.manual_seed(0)
    ours = getattr(gatedrnn, kind)(I, H, 2, bidirectional=True)
    torch.testing.assert_close(gatedrnn.time_scales(theirs), gatedrnn.time_scales(ours), rtol=0, atol=0)
    b = (theirs.bias_ih_l1_reverse + theirs.bias_hh_l1_reverse)[H : 2 * H].detach().double()
    expected = 1 / torch.log1p(torch.exp(-b))
    torch.testing.assert_close(gatedrnn.time_scales(theirs)["l1_reverse"], expected.float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("gate", GATES)
def test_long_time_scales_are_exact(gate: str) -> None:
    """Far beyond where φ rounds to 1."""
    layer: Any = gatedrnn.LSTM(1, 3, forget_gate=gate, tied=True)
    complements = torch.tensor([1e-9, 1e-20, 1e-35], dtype=torch.float64)
    root = resolve(gate).inverse_complement(complements)
    with torch.no_grad():
        for bias in (layer.bias_ih_l0, layer.bias_hh_l0):
            bias.zero_()
        if gate == "refine":
            layer.bias_ih_aux_l0.zero_()
            layer.bias_hh_aux_l0.zero_()
        layer.bias_ih_l0[:3] = root[0] if isinstance(root, tuple) else root
    scale = gatedrnn.time_scales(layer)["l0"]
    assert scale.dtype == torch.float32
    # A bias rounded to float32 (2⁻²⁴·b) moves log(1−f) by α′(b)·b·2⁻²⁴, at most 80·2·5·2⁻²⁴ here.
    torch.testing.assert_close(scale.double(), 1 / complements, rtol=1e-4, atol=0)


def test_16_bit_biases_give_float32() -> None:
    layer: Any = gatedrnn.LSTM(I, H, dtype=torch.bfloat16, forget_init=Chrono(1000.0))
    b = (layer.bias_ih_l0.double() + layer.bias_hh_l0.double())[H : 2 * H].detach()
    scale = gatedrnn.time_scales(layer)["l0"]
    assert scale.dtype == torch.float32
    torch.testing.assert_close(scale.double(), 1 / torch.log1p(torch.exp(-b)), rtol=BIAS[torch.float32], atol=0)


def test_parametrised_biases_count() -> None:
    layer: Any = gatedrnn.LSTM(I, H, forget_init=Constant(0.9))

    class Double(nn.Module):
        def forward(self, b: torch.Tensor) -> torch.Tensor:
            return 2 * b

    nn.utils.parametrize.register_parametrization(layer, "bias_ih_l0", Double())
    b = 2 * math.log(9.0)
    expected = torch.full((H,), 1 / math.log1p(math.exp(-b)))
    torch.testing.assert_close(gatedrnn.time_scales(layer)["l0"], expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", [gatedrnn.LSTM, nn.LSTM])
@pytest.mark.parametrize("measured", [False, True])
def test_parametrised_weights_are_read_as_in_eval_mode(kind: type[nn.Module], measured: bool) -> None:
    """spectral_norm changes its vectors and dropout drops biases in training mode."""
    layer: Any = kind(I, H)
    nn.utils.parametrizations.spectral_norm(layer, "weight_hh_l0")
    nn.utils.parametrize.register_parametrization(layer, "bias_ih_l0", nn.Dropout(0.5))
    arguments = (torch.randn(7, 2, I),) if measured else ()
    expected = gatedrnn.time_scales(layer.eval(), *arguments)
    layer.train()
    values = {name: value.clone() for name, value in layer.state_dict().items()}
    torch.testing.assert_close(gatedrnn.time_scales(layer, *arguments), expected, rtol=0, atol=0)
    torch.testing.assert_close(layer.state_dict(), values, rtol=0, atol=0)
    assert all(module.training for module in layer.modules())


def test_hooks_and_a_forward_of_its_own_are_left_out() -> None:
    class Output(gatedrnn.LSTM):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().forward(input)[0]

    layer, given, calls = Output(I, H), torch.randn(7, 2, I), []
    plain = gatedrnn.LSTM(I, H)
    plain.load_state_dict(layer.state_dict())
    layer.register_forward_hook(lambda *arguments: calls.append(0))
    found, expected = (gatedrnn.time_scales(module, given)["l0"] for module in (layer, plain))
    torch.testing.assert_close(found.mean, expected.mean, rtol=0, atol=0)
    assert not calls


def test_refusals_name_what_was_given() -> None:
    with pytest.raises(ValueError, match="NRU has no forget gate"):
        gatedrnn.time_scales(gatedrnn.NRU(I, H))
    for module in (gatedrnn.LSTM(I, H, bias=False), nn.LSTM(I, H, bias=False), gatedrnn.MGUCell(I, H, bias=False)):
        with pytest.raises(ValueError, match=f"{type(module).__name__} was made with bias=False"):
            gatedrnn.time_scales(module)
    for other in (nn.Linear(2, 2), nn.RNN(2, 2)):
        with pytest.raises(TypeError, match=type(other).__name__):
            gatedrnn.time_scales(other)


@pytest.mark.parametrize("case", [case for case in CELL_CASES if not case.takes_gate], ids=str)
def test_cells_without_a_gate_have_none(case: Case) -> None:
    for module in (case.layer(I, H), case.step(I, H)):
        with pytest.raises(ValueError, match=type(module).__name__):
            gatedrnn.time_scales(module)
