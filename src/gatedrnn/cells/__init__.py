"""One step of time, as pure maths."""

from __future__ import annotations

from gatedrnn.cells.base import Cell, State, Weights
from gatedrnn.cells.fastgrnn import FastGRNN
from gatedrnn.cells.gru import GRU
from gatedrnn.cells.janet import JANET
from gatedrnn.cells.lstm import LSTM
from gatedrnn.cells.mgu import MGU
from gatedrnn.cells.minimal_rnn import MinimalRNN
from gatedrnn.cells.nru import NRU
from gatedrnn.cells.ugrnn import UGRNN

#: The cells by name.
CELLS: dict[str, type[Cell]] = {
    "lstm": LSTM,
    "gru": GRU,
    "janet": JANET,
    "nru": NRU,
    "ugrnn": UGRNN,
    "minimal_rnn": MinimalRNN,
    "fastgrnn": FastGRNN,
    "mgu": MGU,
}

__all__ = [
    "CELLS",
    "GRU",
    "JANET",
    "LSTM",
    "MGU",
    "NRU",
    "UGRNN",
    "Cell",
    "FastGRNN",
    "MinimalRNN",
    "State",
    "Weights",
]
