from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gatedrnn import gates, inits, layers, time_scales
from gatedrnn.lab.models import (
    LayerAndHead,
    Model,
    Sizes,
    gate_spread,
    load,
    read_note,
    spread,
    statistics,
    time_scale_spread,
)
from gatedrnn.lab.models import weights_bytes as to_bytes
from gatedrnn.lab.models.options import cells_with

H = 8


def _built(model: Model, t_max: float = 50.0, last: int | None = 4) -> LayerAndHead:
    torch.manual_seed(0)
    return model.build(Sizes(input_size=2, output_size=3, last=last, t_max=t_max))


@pytest.mark.parametrize("last", [1, 4])
@pytest.mark.parametrize("cell", layers.LAYERS)
def test_the_head_reads_the_last_outputs(cell: str, last: int) -> None:
    network = _built(Model(cell=cell, hidden_size=H, num_layers=2), last=last)
    x = torch.randn(9, 5, 2)
    output, state = network.layer(x)
    head = network.head
    assert isinstance(head, torch.nn.Linear)
    found = network(x)
    expected = output[-last:] @ head.weight.T + head.bias
    assert torch.equal(found.output, expected)
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    gradients = (torch.autograd.grad(of.square().sum(), trained) for of in (found.output, expected))
    assert all(map(torch.equal, *gradients))
    assert all(map(torch.equal, found.carry, state if isinstance(state, tuple) else (state,)))
    assert found.penalty is None


@pytest.mark.parametrize("cell", layers.LAYERS)
def test_a_sequence_in_two_parts_is_the_sequence(cell: str) -> None:
    network = _built(Model(cell=cell, hidden_size=H, num_layers=2), last=None)
    x = torch.randn(9, 5, 2)
    first = network(x[:4])
    second = network(x[4:], first.carry)
    whole = network(x)
    torch.testing.assert_close(torch.cat([first.output, second.output]), whole.output)
    for part, expected in zip(second.carry, whole.carry, strict=True):
        torch.testing.assert_close(part, expected)


@pytest.mark.parametrize("last", [1, 2])
@pytest.mark.parametrize("cell", layers.LAYERS)
def test_the_head_reads_the_end_of_each_row(cell: str, last: int) -> None:
    network = _built(Model(cell=cell, hidden_size=H, num_layers=2), last=last)
    x, lengths = torch.randn(9, 3, 2), torch.tensor([9, 2, 5])
    found = network(x, None, lengths).output
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[:, row], network(x[:length, row : row + 1]).output[:, 0])


def test_a_head_of_two_layers() -> None:
    network = _built(Model(hidden_size=H, head_size=6))
    first, _, second = network.head.children()  # type: ignore[misc]
    x = torch.randn(9, 5, 2)
    expected = second(torch.relu(first(network.layer(x)[0][-4:])))
    assert torch.equal(network(x).output, expected)
    assert (first.in_features, first.out_features, second.out_features) == (H, 6, 3)


@pytest.mark.parametrize("cell", layers.LAYERS)
def test_an_encoder_and_the_mean_over_time(cell: str) -> None:
    network = _built(Model(cell=cell, hidden_size=H, encoder_size=6, read="mean"), last=1)
    encoder = network.encoder
    assert isinstance(encoder, torch.nn.Linear) and (encoder.in_features, encoder.out_features) == (2, 6)
    assert network.layer.input_size == 6
    x = torch.randn(9, 5, 2)
    output, _ = network.layer(x @ encoder.weight.T + encoder.bias)
    torch.testing.assert_close(network(x).output, network.head(output.mean(0, keepdim=True)))
    assert network(x).output.shape == (1, 5, 3)


def test_the_mean_over_time_is_over_the_steps_of_each_row() -> None:
    network = _built(Model(hidden_size=H, encoder_size=6, read="mean"), last=1)
    x, lengths = torch.randn(9, 3, 2), torch.tensor([9, 2, 5])
    found = network(x, None, lengths).output
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(found[:, row], network(x[:length, row : row + 1]).output[:, 0])


@pytest.mark.parametrize(("last", "steps"), [(4, "each of the last 4 steps"), (None, "all steps")])
def test_the_mean_over_time_is_one_answer(last: int | None, steps: str) -> None:
    with pytest.raises(ValueError, match=f"^read mean is for tasks with one answer.*has answers at {steps}$"):
        _built(Model(hidden_size=H, read="mean"), last=last)


def test_weights_with_an_encoder_there_and_back(tmp_path: Path) -> None:
    model = Model(hidden_size=H, encoder_size=6, read="mean")
    network = _built(model, last=1)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(to_bytes(network, model))
    again, read = load(path)
    assert read == model
    x = torch.randn(6, 2, 2)
    assert torch.equal(again(x).output, network(x).output)


@pytest.mark.parametrize("cell", cells_with("trainable_bias_hh"))
def test_weights_and_biases_start_as_the_laboratory_says(cell: str) -> None:
    model = Model(cell=cell, hidden_size=H, num_layers=2)
    network = _built(model)
    for weights in network.layer.weights_by_layer().values():
        for name in ("weight_ih", "weight_hh"):
            assert 0 < weights[name].abs().max() <= H**-0.5
        assert torch.equal(weights["bias_hh"], torch.zeros_like(weights["bias_hh"]))
        assert not weights["bias_hh"].requires_grad and weights["bias_ih"].requires_grad
        (forget, _), *_ = network.layer.cell.forget_biases(weights)
        assert torch.allclose(gates.Fast().value(forget), torch.sigmoid(torch.ones(H)))
        assert (weights["bias_ih"] != 0).sum() == H  # the forget bias and no other


def test_a_trainable_second_bias() -> None:
    network = _built(Model(hidden_size=H, trainable_bias_hh=True))
    assert network.layer.bias_hh_l0.requires_grad
    assert torch.equal(network.layer.bias_hh_l0, torch.zeros(3 * H))


@pytest.mark.parametrize("cell", cells_with("forget_init"))
def test_chrono_takes_the_t_max_it_is_given(cell: str) -> None:
    scales = time_scales(_built(Model(cell=cell, hidden_size=200, forget_init="chrono"), t_max=90.0).layer)["l0"]
    assert scales.min() > 1 and 60 < scales.max() < 90  # u ~ U(1, 89), and −1/log(u/(1+u)) is about u + ½


def test_chrono_sets_the_input_gate_of_an_untied_lstm_too() -> None:
    layer = _built(Model(hidden_size=H, tied=False, forget_init="chrono", forget_gate="sigmoid")).layer
    i, f, g, o = layer.bias_ih_l0.detach().chunk(4)
    assert torch.allclose(i, -f) and (f > 0).all()
    assert torch.equal(torch.cat([g, o]), torch.zeros(2 * H))


def test_refine_starts_with_forget_bias_one_and_auxiliary_bias_zero() -> None:
    layer = _built(Model(hidden_size=H, forget_gate="refine")).layer
    assert torch.allclose(layer.bias_ih_l0[:H], torch.ones(H))
    assert torch.equal(layer.bias_ih_aux_l0, torch.zeros(H))
    assert not layer.bias_hh_aux_l0.requires_grad


@pytest.mark.parametrize(
    ("model", "blocks"),
    [
        (Model(), 3),
        (Model(tied=False), 4),
        (Model(forget_gate="refine"), 4),
        (Model(cell="janet"), 2),
        (Model(cell="gru"), 3),
    ],
)
def test_the_papers_number_of_trainable_parameters(model: Model, blocks: int) -> None:
    network = _built(model)
    trainable = sum(p.numel() for p in network.layer.parameters() if p.requires_grad)
    assert trainable == blocks * (128 * (2 + 128) + 128)


def test_the_nru_starts_as_its_authors_wrote() -> None:
    layer = _built(Model(cell="nru")).layer
    assert sum(p.numel() for p in layer.parameters()) == 38_856
    assert layer.b_h_l0.abs().min() > 0


def test_weights_there_and_back(tmp_path: Path) -> None:
    model = Model(hidden_size=H, forget_gate="refine", num_layers=2)
    network = _built(model)
    path = tmp_path / "weights.safetensors"
    path.write_bytes(to_bytes(network, model))
    assert to_bytes(network, model) == path.read_bytes()
    note = read_note(path)
    assert note is not None and note["model"]["forget_gate"] == "refine" and note["input_size"] == 2
    again, read = load(path)
    assert read == model
    x = torch.randn(6, 2, 2)
    assert torch.equal(again(x).output, network(x).output)


def test_spread_of_known_values() -> None:
    found = spread(torch.arange(5.0))
    assert found["mean"] == 2.0
    assert found["std"] == pytest.approx(2**0.5)  # divided by n
    assert found["quantiles"] == pytest.approx({"0.05": 0.2, "0.25": 1.0, "0.5": 2.0, "0.75": 3.0, "0.95": 3.8})


def test_spread_of_infinite_values() -> None:
    found = spread(torch.tensor([1.0, 2.0, 3.0, float("inf"), float("inf")]))
    assert found["mean"] == float("inf")
    assert found["quantiles"] == {"0.05": 1.2, "0.25": 2.0, "0.5": 3.0, "0.75": float("inf"), "0.95": float("inf")}


def test_spreads_of_a_layer() -> None:
    network = _built(Model(hidden_size=H, num_layers=2))
    scale = float(-1 / torch.log(torch.sigmoid(torch.ones((), dtype=torch.float64))))
    scales = time_scale_spread(network)
    assert set(scales) == {"l0", "l1"}
    assert scales["l1"]["mean"] == pytest.approx(scale, rel=1e-6)
    x = torch.randn(10, 3, 2)
    measured = gate_spread(network, x)
    assert set(measured["l0"]) == {"forget", "input", "output"}
    with torch.no_grad():
        collected = network.layer(x, return_states="gates")[2]
    assert measured["l1"]["forget"]["mean"] == pytest.approx(float(collected["forget"][1].mean()), rel=1e-6)
    nru = _built(Model(cell="nru", hidden_size=H))
    assert time_scale_spread(nru) == {} == gate_spread(nru, x)


def test_gates_are_measured_within_the_lengths() -> None:
    network = _built(Model(hidden_size=H))
    x, lengths = torch.randn(10, 2, 2), torch.tensor([10, 4])
    measured = gate_spread(network, x, lengths)["l0"]["forget"]
    with torch.no_grad():
        values = [network.layer(x[:n, i : i + 1], return_states="gates")[2]["forget"] for i, n in enumerate((10, 4))]
    expected = torch.cat([v.flatten() for v in values])
    assert measured["mean"] == pytest.approx(float(expected.mean()), rel=1e-6)


def test_of_many_rows_some_from_all_over_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _built(Model(hidden_size=H))
    x = torch.randn(10, 9, 2) * torch.arange(9.0).view(-1, 1)  # sorted
    monkeypatch.setattr(statistics, "_MOST_VALUES", 3 * 10 * H)
    with torch.no_grad():
        expected = network.layer(x[:, [0, 3, 6]], return_states="gates")[2]["forget"].mean()
    assert gate_spread(network, x)["l0"]["forget"]["mean"] == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("init", inits.INITS)
def test_every_initialiser_leaves_the_other_biases_zero(init: str) -> None:
    layer = _built(Model(hidden_size=H, forget_init=init)).layer
    assert torch.equal(layer.bias_ih_l0[H:], torch.zeros(2 * H))
    assert layer.bias_ih_l0[:H].abs().min() > 0
