"""explain: which engine runs, and why."""

from __future__ import annotations

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from gatedrnn import engines
from gatedrnn.layers.base import RecurrentLayer
from gatedrnn.layers.modes import eval_mode
from gatedrnn.layers.step import RecurrentStep


def explain(layer: RecurrentLayer | RecurrentStep, input: Tensor | PackedSequence) -> str:
    """Say which engine will run the layer or single step on this input and why; then, one line each, why not the
    others.

    Args:
        layer: A layer or single-step module of this library.
        input: An example of its input; shape, dtype and device matter.

    >>> layer = gatedrnn.LSTM(2, 3, engine="reference")
    >>> print(gatedrnn.explain(layer, torch.randn(5, 1, 2)).splitlines()[0])
    reference: the loop over time in plain PyTorch (requested)
    """
    if not isinstance(layer, RecurrentStep | RecurrentLayer):
        raise TypeError(
            f"explain takes a recurrent layer or a single-step module of gatedrnn, got {type(layer).__name__}"
        )
    with eval_mode(layer):  # not without gradients, on which the engine depends
        return engines.explain(layer.engine, layer.first_scan(input))  # type: ignore[arg-type]
