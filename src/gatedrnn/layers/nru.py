"""Non-saturating recurrent unit."""

from __future__ import annotations

import torch

from gatedrnn import cells
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.checks import check_bool, check_no_projection
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.module import option_of_equations
from gatedrnn.layers.step import RecurrentStep


@documented("a tuple (h_0, m_0), (L·D, B, H) and (L·D, B, M)")
class NRU(RecurrentLayer):
    r"""Non-saturating recurrent unit (Chandar et al., 2019). It has no gate: K heads write to a memory m.

    .. math::
        \begin{aligned}
            h_t &= \operatorname{ReLU}(W_h [x_t; h_{t-1}; m_{t-1}] + b_h), \quad u_t = [h_t; m_{t-1}] \\
            \alpha &= \operatorname{ReLU}(W_a u_t + b_a), \quad \beta = \operatorname{ReLU}(W_b u_t + b_b) \\
            m_t &= m_{t-1} + \tfrac1K \sum_k (\alpha_k v^\alpha_k - \beta_k v^\beta_k)
        \end{aligned}

    where the rows :math:`v^\alpha_k` of L5 norm 1 come from the outer product of the two halves of
    :math:`W_{va} u_t + b_{va}`, rectified too and reshaped to (K, M), and :math:`v^\beta_k` likewise from
    :math:`W_{vb}, b_{vb}`.
    The heads do not see x, as in the authors' code (the paper's text includes it). A row whose norm before the division
    is above 5.1e7, where its fifth powers leave float32, counts as zero; the authors' code gets this by overflow. It
    bounds the memory, which reaches about 5e4 in long sequences: outputs of a fresh layer are of that size.

    {arguments}
        {no_projection}
        memory_size: Size M of the memory; M·K must be a square. Default: 64
        heads: Number K of heads. Default: 4
        relu: Rectify α, β and the outer products, an option of the authors' code. It is off in the configuration that
            they released; without it our runs of adding diverged at 1,000 steps. Default: True
        device, dtype, weight_dropout, engine, recompute: As in :class:`LSTM`; the DropConnect acts on the columns of
            W_h for h and m.

    {call}

    Weights are named by these letters: ``W_h_l0``, ``b_h_l0``, ``W_a_l0``, ``b_a_l0``, ``W_b_l0``, ``b_b_l0``,
    ``W_va_l0``, ``b_va_l0``, ``W_vb_l0``, ``b_vb_l0``; ``_reverse``. They are drawn as in ``torch.nn.Linear``.

    Examples::

        >>> layer = gatedrnn.NRU(10, 20, memory_size=16, heads=4)
        >>> output, (h_n, m_n) = layer(torch.randn(5, 3, 10))
        >>> output.shape, m_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 16]))
    """

    memory_size = option_of_equations("memory_size")
    heads = option_of_equations("heads")
    relu = option_of_equations("relu")

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
        memory_size: int = 64,
        heads: int = 4,
        relu: bool = True,
        weight_dropout: float = 0.0,
        engine: str = "auto",
        recompute: bool = False,
        proj_size: int | None = None,
    ) -> None:
        check_no_projection("NRU", proj_size)
        check_bool("relu", relu)
        super().__init__(
            cells.NRUEquations(memory_size=memory_size, heads=heads, relu=relu),
            input_size,
            hidden_size,
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            device=device,
            dtype=dtype,
            weight_dropout=weight_dropout,
            engine=engine,
            recompute=recompute,
            forget_gate="sigmoid",  # the cell has none and ignores it
            forget_init=None,
        )

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "memory_size": 64, "heads": 4, "relu": True}


@documented("")
class NRUCell(RecurrentStep):
    """One step of :class:`NRU`; interface of ``torch.nn.LSTMCell``, with the memory m in place of c.

    {step}
        memory_size, heads, relu: As in the layer.

    Inputs: input (B, I) or (I,), and the state (h, m), zero by default. Output: the next (h, m).

    Examples::

        >>> cell = gatedrnn.NRUCell(10, 20, memory_size=16)
        >>> h, m = cell(torch.randn(3, 10))
        >>> h.shape, m.shape
        (torch.Size([3, 20]), torch.Size([3, 16]))
    """

    memory_size = option_of_equations("memory_size")
    heads = option_of_equations("heads")
    relu = option_of_equations("relu")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        memory_size: int = 64,
        heads: int = 4,
        relu: bool = True,
    ) -> None:
        check_bool("relu", relu)
        cell = cells.NRUEquations(memory_size=memory_size, heads=heads, relu=relu)
        super().__init__(cell, input_size, hidden_size, bias, device, dtype, forget_gate="sigmoid", forget_init=None)

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "memory_size": 64, "heads": 4, "relu": True}
