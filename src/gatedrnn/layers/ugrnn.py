"""Update gate RNN."""

from __future__ import annotations

from gatedrnn import cells
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.gru_like import GRULikeLayer, GRULikeStep


@documented("h_0, (L·D, B, H)")
class UGRNN(GRULikeLayer):
    r"""Update gate RNN (Collins, Sohl-Dickstein and Sussillo, 2017) with any forget gate.

    .. math::
        \begin{aligned}
            f_t &= \varphi(W_{if} x_t + b_{if} + W_{hf} h_{t-1} + b_{hf}) \\
            g_t &= \tanh(W_{ig} x_t + b_{ig} + W_{hg} h_{t-1} + b_{hg}) \\
            h_t &= h_{t-1} + (1 - f_t) \odot (g_t - h_{t-1})
        \end{aligned}

    {arguments}
        {no_projection}
        {keywords}

    {call}

    Weights have torch.nn's names (``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``; ``_reverse``),
    row blocks f, g. A gate with an auxiliary pre-activation adds H rows under
    ``weight_ih_aux_l0`` and so on. All are drawn from U(±1/√H).

    Examples::

        >>> layer = gatedrnn.UGRNN(10, 20, forget_gate="fast", forget_init="constant")
        >>> input = torch.randn(5, 3, 10)
        >>> output, h_n = layer(input)
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    @staticmethod
    def _cell() -> cells.UGRNNEquations:
        return cells.UGRNNEquations()


@documented("")
class UGRNNCell(GRULikeStep):
    """One step of :class:`UGRNN`; interface of ``torch.nn.GRUCell``.

    {step}
        {step_keywords}

    Inputs: input (B, I) or (I,), and the state h (B, H) or (H,), zero by default. Output: the next state.

    Examples::

        >>> cell = gatedrnn.UGRNNCell(10, 20, forget_gate="fast")
        >>> h = cell(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    @staticmethod
    def _cell() -> cells.UGRNNEquations:
        return cells.UGRNNEquations()
