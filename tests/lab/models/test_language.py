"""The language model: parameters, dropout that trains, regularisers, time scales, and a plain model beside it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gatedrnn import time_scales
from gatedrnn.inits import PowerLaw
from gatedrnn.lab.models import LanguageModel, LanguageNetwork, Sizes, gate_spread
from gatedrnn.layers.drop_connect import drop_entries

VOCABULARY = 11
SIZES = Sizes(VOCABULARY, VOCABULARY, None, 70.0)
_OFF = dict.fromkeys(
    ("output_dropout", "layer_dropout", "input_dropout", "embedding_dropout", "weight_dropout"), 0.0
)  # fmt: skip


def _network(dtype: torch.dtype = torch.float64, **options: Any) -> LanguageNetwork:
    torch.manual_seed(1)
    model = LanguageModel(**{"embedding_size": 6, "hidden_size": 8, **options})
    model.check()
    return model.build(SIZES).to(dtype)


def _text(steps: int, rows: int = 3, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (steps, rows), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("gate", ["sigmoid", "fast", "refine", "softsign"])
def test_the_papers_model_has_its_number_of_parameters(gate: str) -> None:
    model = LanguageModel(forget_gate=gate)
    assert model.tied is (gate == "refine")
    assert LanguageModel(cell="gru", tied=False) == LanguageModel(cell="gru")
    network = model.build(Sizes(10_000, 10_000, None, 70.0), device="meta")
    assert sum(p.numel() for p in network.parameters() if p.requires_grad) == 24_221_600


class _Plain(nn.Module):
    """The same on torch.nn.LSTM."""

    def __init__(self, network: LanguageNetwork) -> None:
        super().__init__()
        self.embedding, self.bias = network.embedding.weight, network.bias
        self.rnns = []
        for layer in network.rnns:
            rnn = nn.LSTM(layer.input_size, layer.hidden_size, dtype=self.bias.dtype)  # type: ignore[arg-type]
            rnn.load_state_dict(layer.state_dict())
            self.rnns.append(rnn)

    def forward(self, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        h = F.embedding(x, self.embedding)
        after = []
        for rnn, state in zip(self.rnns, states, strict=True):
            h, state = rnn(h, state)
            after.append(tuple(part.detach() for part in state))
        return h @ self.embedding.t() + self.bias, after


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_two_batches_with_carried_state_are_those_of_torch(dtype: torch.dtype, tolerance: float) -> None:
    network = _network(dtype, forget_gate="sigmoid", **_OFF)
    plain = _Plain(network)
    carry, states = None, [None] * 3
    text = _text(21)
    for begin, end in ((0, 9), (9, 20)):
        x, target = text[begin:end], text[begin + 1 : end + 1]
        result = network(x, carry)
        carry = tuple(part.detach() for part in result.carry or ())
        scores, states = plain(x, states)  # type: ignore[assignment]
        ours, theirs = (F.cross_entropy(s.flatten(0, 1), target.flatten()) for s in (result.output, scores))
        assert ours.item() == pytest.approx(theirs.item(), rel=tolerance)
        torch.testing.assert_close(result.output, scores, rtol=tolerance, atol=tolerance)
    assert carry is not None and len(carry) == 6


@pytest.mark.parametrize("options", [{"forget_gate": "fast"}, {"forget_gate": "refine"}, {"cell": "gru"}], ids=str)
def test_the_gradient_of_every_recurrent_matrix_is_that_through_its_mask(options: dict[str, Any]) -> None:
    """Autograd through mask·W by hand: the weights are replaced by products with the masks that were drawn."""
    network = _network(**{**options, **_OFF, "weight_dropout": 0.5})
    x, target = _text(7), _text(7, seed=3)
    torch.manual_seed(5)
    F.cross_entropy(network(x).output.flatten(0, 1), target.flatten()).backward()

    again = _network(**{**options, **_OFF})
    torch.manual_seed(5)
    masks = {}
    for place, layer in enumerate(again.rnns):
        for name, weight in layer.named_parameters():
            if name.startswith("weight_hh"):
                masks[f"rnns.{place}.{name}"] = drop_entries(torch.ones_like(weight), 0.5)
    parameters = dict(again.named_parameters())
    products = {name: parameters[name] * mask for name, mask in masks.items()}
    scores = torch.func.functional_call(again, {**parameters, **products}, (x,)).output
    F.cross_entropy(scores.flatten(0, 1), target.flatten()).backward()
    assert len(masks) == (6 if options.get("forget_gate") == "refine" else 3)
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, parameters[name].grad, rtol=1e-10, atol=1e-14)
    for name, mask in masks.items():
        gradient = network.get_parameter(name).grad
        assert gradient is not None and bool((gradient[mask == 0] == 0).all()) and bool((gradient[mask > 0] != 0).any())


def test_recurrent_matrices_train() -> None:
    network = _network(weight_dropout=0.5)
    before = {name: p.detach().clone() for name, p in network.named_parameters() if "weight_hh" in name}
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    for update in range(3):
        optimizer.zero_grad()
        F.cross_entropy(network(_text(7)).output.flatten(0, 1), _text(7, seed=update).flatten()).backward()
        optimizer.step()
    assert all(not torch.equal(network.get_parameter(name), weight) for name, weight in before.items())


@pytest.mark.parametrize("option", ["output_dropout", "layer_dropout", "input_dropout"])
def test_dropout_is_locked_over_the_steps(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the next place is zero in the same units at every step, and scaled to the same mean elsewhere."""
    network = _network(**{**_OFF, option: 0.5})
    before: list[Tensor] = []
    after: list[Tensor] = []
    dropped = LanguageNetwork._dropped

    def noted(self: LanguageNetwork, x: Tensor, probability: float) -> Tensor:
        found = dropped(self, x, probability)
        if probability:
            before.append(x)
            after.append(found)
        return found

    monkeypatch.setattr(LanguageNetwork, "_dropped", noted)
    network(_text(9))
    assert len(after) == (2 if option == "layer_dropout" else 1)
    for x, found in zip(before, after, strict=True):
        kept = found != 0
        assert torch.equal(kept, kept[:1].expand_as(kept)) and 0 < int(kept[0].sum()) < kept[0].numel()
        torch.testing.assert_close(found[kept], 2 * x[kept])
    network.eval()
    assert torch.equal(network(_text(9)).output, network(_text(9)).output)


def test_embedding_dropout_drops_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _network(**{**_OFF, "embedding_dropout": 0.5})
    given: list[Tensor] = []
    network.rnns[0].register_forward_pre_hook(lambda layer, arguments: given.append(arguments[0]))
    x = torch.arange(VOCABULARY).repeat(2).unsqueeze(-1)  # every word twice
    network(x)
    (words,) = given
    kept = (words != 0).all(-1).flatten()
    assert torch.equal(kept, (words != 0).any(-1).flatten()) and torch.equal(kept[:VOCABULARY], kept[VOCABULARY:])
    assert 0 < int(kept.sum()) < len(kept)
    torch.testing.assert_close(words[kept], 2 * network.embedding.weight[x][kept])


def test_the_regularisers_by_hand() -> None:
    network = _network(**{**_OFF, "output_dropout": 0.5}, activation_penalty=3.0, temporal_penalty=0.7)
    raws: list[Tensor] = []
    network.rnns[-1].register_forward_hook(lambda layer, arguments, result: raws.append(result[0]))
    torch.manual_seed(2)
    result = network(_text(9))
    raw = raws[0]
    torch.manual_seed(2)
    mask = torch.empty(raw.shape[1:], dtype=raw.dtype).bernoulli_(0.5) * 2
    steps = sum(((raw[t + 1] - raw[t]) ** 2).mean() for t in range(8)) / 8
    torch.testing.assert_close(result.penalty, 3.0 * ((raw * mask) ** 2).mean() + 0.7 * steps)
    assert network(_text(1)).penalty is not None
    network.eval()
    assert network(_text(9)).penalty is None


@pytest.mark.parametrize("options", [{"cell": "gru"}, {"cell": "nru", "memory_size": 16}], ids=str)
def test_other_cells_carry_their_state(options: dict[str, Any]) -> None:
    network = _network(**options).eval()
    text = _text(12)
    whole = network(text).output
    first = network(text[:5])
    assert first.carry is not None and len(first.carry) == (3 if options["cell"] == "gru" else 6)
    torch.testing.assert_close(torch.cat([first.output, network(text[5:], first.carry).output]), whole)


def test_the_authors_recipe_of_time_scales() -> None:
    network = _network(forget_gate="fast", forget_init="multi_timescale", hidden_size=9)
    first, second = (time_scales(layer)["l0"] for layer in network.rnns[:2])  # type: ignore[arg-type]
    torch.testing.assert_close(first, torch.tensor([3.0] * 4 + [4.0] * 5, dtype=torch.float64))
    torch.testing.assert_close(second, PowerLaw().time_scales(9), rtol=1e-6, atol=0)  # biases are float32
    for place, layer in enumerate(network.rnns):
        frozen = [name for name, p in layer.named_parameters() if not p.requires_grad]
        assert frozen == ([] if place == 2 else ["bias_ih_l0", "bias_hh_l0"])
        if place < 2:  # σ(b_i) = 1−f
            bias = (layer.bias_ih_l0 + layer.bias_hh_l0)[: layer.hidden_size]  # type: ignore[index,operator]
            expected = -torch.expm1(-1 / time_scales(layer)["l0"])  # type: ignore[arg-type]
            torch.testing.assert_close(torch.sigmoid(bias), expected, rtol=1e-6, atol=0)


def test_power_law_in_every_layer() -> None:
    network = _network(forget_init="power_law")
    for layer in network.rnns:
        expected = PowerLaw().time_scales(layer.hidden_size)  # type: ignore[arg-type]
        torch.testing.assert_close(time_scales(layer)["l0"], expected, rtol=1e-6, atol=0)  # type: ignore[arg-type]


def test_gates_are_measured_without_dropout() -> None:
    network = _network()
    first, second = (gate_spread(network, _text(5)) for _ in range(2))
    assert first == second and network.training
    assert list(first) == ["rnns.0.l0", "rnns.1.l0", "rnns.2.l0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "janet"}, "cell must be one of lstm, gru, nru, got 'janet'"),
        ({"cell": "gru", "tied": True}, "tied is for lstm, not for the cell gru, got True"),
        ({"cell": "nru", "forget_gate": "fast"}, "forget_gate is for lstm, gru, not for the cell nru, got fast"),
        ({"memory_size": 0}, "memory_size is for nru, not for the cell lstm, got 0"),
        ({"hidden_size": 0}, "hidden_size must be between 1 and 1000000, got 0"),
        ({"weight_dropout": 1.0}, "weight_dropout must be at least 0 and below 1, got 1.0"),
        ({"input_dropout": float("nan")}, "input_dropout must be at least 0 and below 1, got nan"),
        ({"temporal_penalty": -1.0}, "temporal_penalty must be 0 or a positive number, got -1.0"),
        ({"forget_gate": "slow"}, "forget_gate must be one of sigmoid, .*, got 'slow'"),
        ({"forget_init": "slow"}, "forget_init must be one of .*multi_timescale, got 'slow'"),
        ({"forget_init": "multi_timescale", "num_layers": 2}, "forget_init multi_timescale is for three layers"),
        (
            {"forget_init": "uniform", "embedding_size": 1},
            "embedding_size must be at least 2 for uniform biases, got 1",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(LanguageModel(), **{"forget_gate": None, "tied": None, **options}).check()
