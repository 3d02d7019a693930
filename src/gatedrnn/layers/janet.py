"""JANET, the LSTM with a forget gate only."""

from __future__ import annotations

import torch

from gatedrnn import cells
from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.checks import check_no_projection
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.module import option_of_equations
from gatedrnn.layers.step import RecurrentStep


@documented("h_0, (L·D, B, H)")
class JANET(RecurrentLayer):
    r"""JANET (van der Westhuizen and Lasenby, 2018) with any forget gate.

    .. math::
        \begin{aligned}
            f_t &= \varphi(W_{if} x_t + b_{if} + W_{hf} h_{t-1} + b_{hf}) \\
            i_t &= \sigma(\beta - \operatorname{logit} f_t) \\
            g_t &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
            h_t &= f_t \odot h_{t-1} + i_t \odot g_t
        \end{aligned}

    :math:`|h| \le e^\beta` for every gate. Its authors start it with ``forget_init=gatedrnn.inits.Chrono(t_max)``.

    {arguments}
        {no_projection}
        {keywords}
        beta: The shift of the input factor, between -20 and 20. Default: 1

    {call}

    Weights have torch.nn's names (``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``; ``_reverse``),
    row blocks f, g. A gate with an auxiliary pre-activation adds H rows under
    ``weight_ih_aux_l0`` and so on. All are drawn from U(±1/√H).

    Examples::

        >>> layer = gatedrnn.JANET(10, 20, forget_init=gatedrnn.inits.Chrono(t_max=100))
        >>> output, h_n = layer(torch.randn(5, 3, 10))
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    beta = option_of_equations("beta")

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
        beta: float = 1.0,
        proj_size: int | None = None,
    ) -> None:
        check_no_projection("JANET", proj_size)
        super().__init__(
            cells.JANETEquations(beta=beta),
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
        return {**super()._options(), "beta": 1.0}


@documented("")
class JANETCell(RecurrentStep):
    """One step of :class:`JANET`; interface of ``torch.nn.GRUCell``.

    {step}
        forget_gate, forget_init, beta: As in the layer.

    Inputs: input (B, I) or (I,), and the state h (B, H) or (H,), zero by default. Output: the next state.

    Examples::

        >>> cell = gatedrnn.JANETCell(10, 20, forget_gate="fast")
        >>> h = cell(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    beta = option_of_equations("beta")

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
        beta: float = 1.0,
    ) -> None:
        cell = cells.JANETEquations(beta=beta)
        super().__init__(cell, input_size, hidden_size, bias, device, dtype, forget_gate, forget_init)

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "beta": 1.0}
