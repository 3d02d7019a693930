"""MinimalRNN."""

from __future__ import annotations

from gatedrnn import cells
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.gru_like import GRULikeLayer, GRULikeStep


@documented("h_0, (L·D, B, H)")
class MinimalRNN(GRULikeLayer):
    r"""MinimalRNN (Chen, 2017) with any forget gate.

    .. math::
        \begin{aligned}
            z_t &= \tanh(W x_t + b_z) \\
            u_t &= \varphi(U h_{t-1} + V z_t + b_u) \\
            h_t &= h_{t-1} + (1 - u_t) \odot (z_t - h_{t-1})
        \end{aligned}

    {arguments}
        {no_projection}
        {keywords}

    {call}

    Weights are named by these letters: ``W_l0``, ``U_l0``, ``V_l0``, ``b_z_l0``, ``b_u_l0``; ``_reverse``. A gate with
    an auxiliary pre-activation adds ``U_aux_l0``, ``V_aux_l0``, ``b_u_aux_l0``. All are drawn from U(±1/√H).

    Examples::

        >>> layer = gatedrnn.MinimalRNN(10, 20, forget_gate="fast", forget_init="constant")
        >>> input = torch.randn(5, 3, 10)
        >>> output, h_n = layer(input)
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    @staticmethod
    def _cell() -> cells.MinimalRNNEquations:
        return cells.MinimalRNNEquations()


@documented("")
class MinimalRNNCell(GRULikeStep):
    """One step of :class:`MinimalRNN`; interface of ``torch.nn.GRUCell``.

    {step}
        {step_keywords}

    Inputs: input (B, I) or (I,), and the state h (B, H) or (H,), zero by default. Output: the next state.

    Examples::

        >>> cell = gatedrnn.MinimalRNNCell(10, 20, forget_gate="fast")
        >>> h = cell(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    @staticmethod
    def _cell() -> cells.MinimalRNNEquations:
        return cells.MinimalRNNEquations()
