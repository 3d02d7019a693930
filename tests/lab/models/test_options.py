from __future__ import annotations

import pytest

from gatedrnn import gates, inits, layers
from gatedrnn.lab.models import Model


def test_the_defaults_are_the_papers() -> None:
    model = Model()
    assert (model.cell, model.hidden_size, model.num_layers) == ("lstm", 128, 1)
    assert (model.tied, model.forget_gate, model.forget_init) == (True, "fast", "constant")
    assert model.memory_size is None and model.heads is None
    nru = Model(cell="nru")
    assert (nru.memory_size, nru.heads, nru.forget_gate, nru.forget_init, nru.tied) == (64, 4, None, None, None)
    assert Model(cell="gru") == Model(cell="gru", tied=False)


@pytest.mark.parametrize("cell", layers.LAYERS)
def test_every_cell_has_its_defaults(cell: str) -> None:
    Model(cell=cell).check()


@pytest.mark.parametrize("gate", gates.GATES)
@pytest.mark.parametrize("init", inits.INITS)
def test_every_gate_and_initialiser(gate: str, init: str) -> None:
    Model(forget_gate=gate, forget_init=init).check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "rnn"}, "cell must be one of lstm, gru, janet.*got 'rnn'"),
        ({"hidden_size": 0}, "hidden_size must be between 1 and 1000000, got 0"),
        ({"hidden_size": 10**10}, "hidden_size must be between 1 and 1000000, got 10000000000"),
        ({"num_layers": -1}, "num_layers must be between 1 and 1000, got -1"),
        ({"num_layers": 10**9}, "num_layers must be between 1 and 1000, got 1000000000"),
        ({"cell": "gru", "tied": True}, "tied is for lstm, not for the cell gru, got True"),
        ({"forget_gate": "quick"}, "forget_gate must be one of sigmoid, softsign, fast.*got 'quick'"),
        ({"forget_init": "zero"}, "forget_init must be one of constant, chrono.*got 'zero'"),
        ({"cell": "nru", "forget_gate": "fast"}, "forget_gate is for lstm.*not for the cell nru, got fast"),
        ({"cell": "nru", "forget_init": "chrono"}, "forget_init is for lstm.*not for the cell nru"),
        ({"hidden_size": "8"}, "hidden_size must be an integer, got '8'"),
        ({"hidden_size": 8.0}, "hidden_size must be an integer, got 8.0"),
        ({"hidden_size": True}, "hidden_size must be an integer, got True"),
        ({"hidden_size": None}, "hidden_size must be an integer, got None"),
        ({"tied": 1}, "tied must be true or false or None, got 1"),
        ({"cell": ["lstm"]}, "cell must be a string, got \\['lstm'\\]"),
        ({"memory_size": 64}, "memory_size is for nru, not for the cell lstm, got 64"),
        ({"memory_size": 0}, "memory_size is for nru, not for the cell lstm, got 0"),
        ({"cell": "gru", "heads": 0}, "heads is for nru, not for the cell gru, got 0"),
        ({"cell": "nru", "heads": 0}, "heads must be between 1 and 1000000, got 0"),
        ({"cell": "nru", "memory_size": -4, "heads": -4}, "memory_size must be between 1 and 1000000, got -4"),
        ({"cell": "nru", "heads": 3}, "64·3 = 192"),
        ({"cell": "nru", "trainable_bias_hh": True}, "trainable_bias_hh is for lstm, gru.*not for the cell nru"),
        ({"encoder_size": 0}, "encoder_size must be between 1 and 1000000, got 0"),
        ({"read": "first"}, "read must be one of last, mean, got 'first'"),
        ({"engine": "gpu"}, "unknown engine 'gpu'; known engines: auto, cpu, graph, reference"),
        ({"hidden_size": 1, "forget_init": "uniform"}, "hidden_size must be at least 2 for uniform biases, got 1"),
    ],
)
def test_what_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(**options).check()  # type: ignore[arg-type]


def test_the_memory_of_an_encoder_is_counted() -> None:
    plain, encoded = Model(hidden_size=8).least_memory(3), Model(hidden_size=8, encoder_size=5).least_memory(3)
    assert encoded.at_a_step - plain.at_a_step == 5
    assert encoded.weights - plain.weights == 5 * (3 + 1) + 3 * 8 * (5 - 3)
