"""Long short-term memory."""

from __future__ import annotations

import torch

from gatedrnn import cells
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.checks import check_bool
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.module import option_of_equations
from gatedrnn.layers.step import RecurrentStep


@documented("a tuple (h_0, c_0), (L·D, B, H) each, h_0 of size proj_size if that is positive")
class LSTM(RecurrentLayer):
    r"""Long short-term memory with any forget gate; with the sigmoid and untied it is ``torch.nn.LSTM``.

    .. math::
        \begin{aligned}
            f_t &= \varphi(W_{if} x_t + b_{if} + W_{hf} h_{t-1} + b_{hf}) \\
            i_t &= \sigma(W_{ii} x_t + b_{ii} + W_{hi} h_{t-1} + b_{hi}) \quad\text{or, tied,}\quad i_t = 1 - f_t \\
            g_t &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
            o_t &= \sigma(W_{io} x_t + b_{io} + W_{ho} h_{t-1} + b_{ho}) \\
            c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
            h_t &= o_t \odot \tanh(c_t)
        \end{aligned}

    The complement 1−f is computed directly, so that time scales far beyond 1e7 steps keep their meaning in float32.

    {arguments}
        proj_size: If positive, h is projected to that size, h = W_hr (o∘tanh(c)). Default: 0
        tied: If ``True``, the input gate is 1−f and has no weights. Default: ``False``
        {keywords}

    {call}

    Weights have torch.nn's names (``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, ``weight_hr_l0``;
    ``_reverse``), row blocks i, f, g, o as in torch.nn.LSTM; tied f, g, o. A gate with an auxiliary pre-activation adds
    H rows under ``weight_ih_aux_l0`` and so on. All are drawn from U(±1/√H).

    Examples::

        >>> layer = gatedrnn.LSTM(10, 20, 2, forget_gate="fast", tied=True)
        >>> input = torch.randn(5, 3, 10)
        >>> h_0, c_0 = torch.randn(2, 3, 20), torch.randn(2, 3, 20)
        >>> output, (h_n, c_n) = layer(input, (h_0, c_0))
        >>> output.shape, c_n.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    tied = option_of_equations("tied")
    proj_size = option_of_equations("proj_size")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_gate: str | Gate = "sigmoid",
        tied: bool = False,
        forget_init: str | ForgetInit | None = None,
        weight_dropout: float = 0.0,
        engine: str = "auto",
        recompute: bool = False,
    ) -> None:
        check_bool("tied", tied)
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if isinstance(hidden_size, int) and 0 < hidden_size <= proj_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        super().__init__(
            cells.LSTMEquations(tied=tied, proj_size=proj_size),
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

    def _options(self) -> dict[str, object]:
        return {"proj_size": 0, **super()._options(), "tied": False}


@documented("")
class LSTMCell(RecurrentStep):
    """One step of :class:`LSTM`; interface of ``torch.nn.LSTMCell``.

    {step}
        tied, forget_gate, forget_init: As in the layer.

    Inputs: input (B, I) or (I,), and the state (h, c), (B, H) or (H,) each, zero by default. Output: the next (h, c).

    Examples::

        >>> cell = gatedrnn.LSTMCell(10, 20, forget_gate="fast")
        >>> h, c = cell(torch.randn(3, 10))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    tied = option_of_equations("tied")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        forget_gate: str | Gate = "sigmoid",
        tied: bool = False,
        forget_init: str | ForgetInit | None = None,
    ) -> None:
        check_bool("tied", tied)
        cell = cells.LSTMEquations(tied=tied)
        super().__init__(cell, input_size, hidden_size, bias, device, dtype, forget_gate, forget_init)

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "tied": False}
