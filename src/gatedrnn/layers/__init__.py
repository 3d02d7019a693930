"""Recurrent layers, their single-step modules, and tools for them."""

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
from gatedrnn.layers.registry import LAYERS, STEPS, safe_globals
from gatedrnn.layers.step import RecurrentStep
from gatedrnn.layers.time_scales import time_scales
from gatedrnn.layers.ugrnn import UGRNN, UGRNNCell

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
    "safe_globals",
    "time_scales",
]
