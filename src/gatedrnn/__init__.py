"""Gated recurrent layers for PyTorch with a replaceable gate function."""

from __future__ import annotations

from gatedrnn import export, gates, inits
from gatedrnn.layers import (
    GRU,
    JANET,
    LSTM,
    MGU,
    NRU,
    UGRNN,
    FastGRNN,
    FastGRNNCell,
    GRUCell,
    JANETCell,
    LSTMCell,
    MGUCell,
    MinimalRNN,
    MinimalRNNCell,
    NRUCell,
    UGRNNCell,
    chunks,
    convert,
    explain,
    safe_globals,
    time_scales,
)

__version__ = "0.1.0"

__all__ = [
    "GRU",
    "JANET",
    "LSTM",
    "MGU",
    "NRU",
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
    "UGRNNCell",
    "__version__",
    "chunks",
    "convert",
    "explain",
    "export",
    "gates",
    "inits",
    "safe_globals",
    "time_scales",
]
