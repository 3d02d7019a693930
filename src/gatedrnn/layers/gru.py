"""Gated recurrent unit."""

from __future__ import annotations

from gatedrnn import cells
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.gru_like import GRULikeLayer, GRULikeStep


@documented("h_0, (L·D, B, H)")
class GRU(GRULikeLayer):
    r"""Gated recurrent unit with any forget gate; with the sigmoid it is ``torch.nn.GRU``.

    .. math::
        \begin{aligned}
            r_t &= \sigma(W_{ir} x_t + b_{ir} + W_{hr} h_{t-1} + b_{hr}) \\
            f_t &= \varphi(W_{iz} x_t + b_{iz} + W_{hz} h_{t-1} + b_{hz}) \\
            n_t &= \tanh(W_{in} x_t + b_{in} + r_t \odot (W_{hn} h_{t-1} + b_{hn})) \\
            h_t &= h_{t-1} + (1 - f_t) \odot (n_t - h_{t-1})
        \end{aligned}

    {arguments}
        {no_projection}
        {keywords}

    {call}

    Weights have torch.nn's names (``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``; ``_reverse``),
    row blocks r, z, n as in torch.nn.GRU, where z is the forget gate. A gate with an auxiliary pre-activation adds
    H rows under ``weight_ih_aux_l0`` and so on. All are drawn from U(±1/√H).

    Examples::

        >>> layer = gatedrnn.GRU(10, 20, forget_gate="fast", forget_init="constant")
        >>> input = torch.randn(5, 3, 10)
        >>> output, h_n = layer(input)
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    @staticmethod
    def _cell() -> cells.GRUEquations:
        return cells.GRUEquations()


@documented("")
class GRUCell(GRULikeStep):
    """One step of :class:`GRU`; interface of ``torch.nn.GRUCell``.

    {step}
        {step_keywords}

    Inputs: input (B, I) or (I,), and the state h (B, H) or (H,), zero by default. Output: the next state.

    Examples::

        >>> cell = gatedrnn.GRUCell(10, 20, forget_gate="fast")
        >>> h = cell(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    @staticmethod
    def _cell() -> cells.GRUEquations:
        return cells.GRUEquations()
