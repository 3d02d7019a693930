"""FastGRNN, the published cell of that name."""

from __future__ import annotations

from gatedrnn import cells
from gatedrnn.layers.docstrings import documented
from gatedrnn.layers.gru_like import GRULikeLayer, GRULikeStep


@documented("h_0, (L·D, B, H)")
class FastGRNN(GRULikeLayer):
    r"""FastGRNN (Kusupati et al., 2018) with any forget gate. The name is the published cell's; the fast gate is a gate
    function, which can be used in it.

    .. math::
        \begin{aligned}
            z_t &= \varphi(W x_t + U h_{t-1} + b_z) \\
            \tilde h_t &= \tanh(W x_t + U h_{t-1} + b_h) \\
            h_t &= (\sigma(\zeta)(1 - z_t) + \sigma(\nu)) \odot \tilde h_t + z_t \odot h_{t-1}
        \end{aligned}

    {arguments}
        {no_projection}
        {keywords}

    {call}

    Weights are named by these letters: ``W_l0``, ``U_l0``, ``b_z_l0``, ``b_h_l0``, ``zeta_l0``, ``nu_l0``;
    ``_reverse``. A gate with an auxiliary pre-activation adds ``W_aux_l0``, ``U_aux_l0``, ``b_z_aux_l0``. They are
    initialised as in the authors' code: weights 0.1·N(0, 1), b_h = 1, ζ = 1, ν = −4, and φ(b_z) = σ(1).

    Examples::

        >>> layer = gatedrnn.FastGRNN(10, 20, forget_gate="fast", forget_init="constant")
        >>> input = torch.randn(5, 3, 10)
        >>> output, h_n = layer(input)
        >>> output.shape, h_n.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    @staticmethod
    def _cell() -> cells.FastGRNNEquations:
        return cells.FastGRNNEquations()


@documented("")
class FastGRNNCell(GRULikeStep):
    """One step of :class:`FastGRNN`; interface of ``torch.nn.GRUCell``.

    {step}
        {step_keywords}

    Inputs: input (B, I) or (I,), and the state h (B, H) or (H,), zero by default. Output: the next state.

    Examples::

        >>> cell = gatedrnn.FastGRNNCell(10, 20, forget_gate="fast")
        >>> h = cell(torch.randn(3, 10))
        >>> h.shape
        torch.Size([3, 20])
    """

    @staticmethod
    def _cell() -> cells.FastGRNNEquations:
        return cells.FastGRNNEquations()
