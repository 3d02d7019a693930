"""One step of time, as pure maths. ``LSTMEquations`` is the step that ``gatedrnn.LSTM`` and ``LSTMCell`` compute."""

from __future__ import annotations

from gatedrnn.cells.base import Cell, State, Weights
from gatedrnn.cells.fastgrnn import FastGRNNEquations
from gatedrnn.cells.gru import GRUEquations
from gatedrnn.cells.janet import JANETEquations
from gatedrnn.cells.lstm import LSTMEquations
from gatedrnn.cells.mgu import MGUEquations
from gatedrnn.cells.minimal_rnn import MinimalRNNEquations
from gatedrnn.cells.nru import NRUEquations
from gatedrnn.cells.ugrnn import UGRNNEquations

#: The cells by name.
CELLS: dict[str, type[Cell]] = {
    "lstm": LSTMEquations,
    "gru": GRUEquations,
    "janet": JANETEquations,
    "nru": NRUEquations,
    "ugrnn": UGRNNEquations,
    "minimal_rnn": MinimalRNNEquations,
    "fastgrnn": FastGRNNEquations,
    "mgu": MGUEquations,
}

__all__ = [
    "CELLS",
    "Cell",
    "FastGRNNEquations",
    "GRUEquations",
    "JANETEquations",
    "LSTMEquations",
    "MGUEquations",
    "MinimalRNNEquations",
    "NRUEquations",
    "State",
    "UGRNNEquations",
    "Weights",
]
