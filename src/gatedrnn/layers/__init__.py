"""What users build with: recurrent layers, their single steps, and tools around them."""

from __future__ import annotations

from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.chunks import chunks
from gatedrnn.layers.convert import convert
from gatedrnn.layers.explain import explain
from gatedrnn.layers.fastgrnn import FastGRNN, FastGRNNCell
from gatedrnn.layers.gru import GRU, GRUCell
from gatedrnn.layers.janet import JANET, JANETCell
from gatedrnn.layers.lstm import LSTM, LSTMCell
from gatedrnn.layers.mgu import MGU, MGUCell
from gatedrnn.layers.minimal_rnn import MinimalRNN, MinimalRNNCell
from gatedrnn.layers.nru import NRU, NRUCell
from gatedrnn.layers.step import RecurrentStep
from gatedrnn.layers.time_scales import time_scales
from gatedrnn.layers.ugrnn import UGRNN, UGRNNCell

#: The layers by the name of their cell.
LAYERS: dict[str, type[RecurrentLayer]] = {
    "lstm": LSTM,
    "gru": GRU,
    "janet": JANET,
    "nru": NRU,
    "ugrnn": UGRNN,
    "minimal_rnn": MinimalRNN,
    "fastgrnn": FastGRNN,
    "mgu": MGU,
}

#: The single-step modules by the name of their cell.
STEPS: dict[str, type[RecurrentStep]] = {
    "lstm": LSTMCell,
    "gru": GRUCell,
    "janet": JANETCell,
    "nru": NRUCell,
    "ugrnn": UGRNNCell,
    "minimal_rnn": MinimalRNNCell,
    "fastgrnn": FastGRNNCell,
    "mgu": MGUCell,
}

__all__ = [
    "GRU",
    "JANET",
    "LAYERS",
    "LSTM",
    "MGU",
    "NRU",
    "STEPS",
    "UGRNN",
    "FastGRNN",
    "FastGRNNCell",
    "GRUCell",
    "JANETCell",
    "LSTMCell",
    "MGUCell",
    "MinimalRNN",
    "MinimalRNNCell",
    "NRUCell",
    "RecurrentLayer",
    "RecurrentStep",
    "UGRNNCell",
    "chunks",
    "convert",
    "explain",
    "time_scales",
]
