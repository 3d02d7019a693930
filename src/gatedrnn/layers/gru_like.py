"""Layers and single-step modules of the cells whose state is h alone, and which take torch.nn.GRU's arguments."""

from __future__ import annotations

from abc import abstractmethod

import torch

from gatedrnn.cells import Cell
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.checks import check_no_projection
from gatedrnn.layers.step import RecurrentStep


class GRULikeLayer(RecurrentLayer):
    """Base of GRU, UGRNN, MinimalRNN, FastGRNN and MGU. LSTM, JANET and NRU have more arguments."""

    @staticmethod
    @abstractmethod
    def _cell() -> Cell: ...

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_gate: str | Gate = "sigmoid",
        forget_init: str | ForgetInit | None = None,
        weight_dropout: float = 0.0,
        engine: str = "auto",
        recompute: bool = False,
        proj_size: int | None = None,
    ) -> None:
        check_no_projection(type(self).__name__, proj_size)
        super().__init__(
            self._cell(),
            input_size,
            hidden_size,
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
            forget_gate=forget_gate,
            forget_init=forget_init,
            weight_dropout=weight_dropout,
            engine=engine,
            recompute=recompute,
        )


class GRULikeStep(RecurrentStep):
    """Base of GRUCell, UGRNNCell, MinimalRNNCell, FastGRNNCell and MGUCell."""

    @staticmethod
    @abstractmethod
    def _cell() -> Cell: ...

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_gate: str | Gate = "sigmoid",
        forget_init: str | ForgetInit | None = None,
    ) -> None:
        super().__init__(self._cell(), input_size, hidden_size, bias, device, dtype, forget_gate, forget_init)
