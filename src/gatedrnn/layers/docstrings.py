"""The parts that the docstrings of all layers share, written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)

_ARGUMENTS = """Args:
        input_size: The number of features of the input x.
        hidden_size: The number of units H.
        num_layers: Number of stacked layers. Default: 1
        bias: If ``False``, the layer has no bias. Default: ``True``
        batch_first: If ``True``, input and output are (B, T, features) instead of (T, B, features). States are not
            affected. Default: ``False``
        dropout: Probability of dropout on the outputs of each layer except the last. Default: 0
        bidirectional: If ``True``, a second set of weights reads each layer's input backwards. Default: ``False``"""

_NO_PROJECTION = """proj_size: Only for the LSTM; a value raises ValueError."""

_KEYWORDS = """device, dtype: Device and dtype of the parameters.
        forget_gate: The gate function of the factor on the old state: a name in ``gatedrnn.gates.GATES`` or a gate
            object. Default: ``"sigmoid"``
        forget_init: Initialiser of the forget bias: an object of ``gatedrnn.inits`` or a name that needs no argument.
            ``None`` keeps the default biases. Default: ``None``
        weight_dropout: DropConnect: probability with which entries of the recurrent weights are dropped, one mask
            per call and layer, in training only. Default: 0
        engine: ``"auto"`` (the first that can run the call), ``"cpu"``, ``"graph"`` (inside torch.compile and
            torch.export) or ``"reference"``. ``gatedrnn.explain`` shows the choice. Default: ``"auto"``
        recompute: If ``True``, stores the state every √T steps only and computes the rest again in the backward
            pass: less memory, same gradients. Default: ``False``"""

_CALL = """Inputs: input, hx, lengths, return_states
        (T: steps, B: batch size, I: input_size, H: hidden_size, L: num_layers, D: 2 if bidirectional, else 1)

        * **input**: (T, B, I), (B, T, I) with ``batch_first``, (T, I) unbatched, or a ``PackedSequence``.
        * **hx**: the initial state, zero by default; STATE.
        * **lengths**: (B,) integers, the number of steps of each row of a padded batch. Outputs past the length
          are zero, final states are taken at the length, the reverse direction starts there.
        * **return_states**: ``True`` adds a third result, a dict of the states of all steps (``"h"``, for the LSTM also
          ``"c"``, for the NRU ``"m"``): (L·D, T, B, size) each, (L·D, B, T, size) with ``batch_first``, (L·D, T, size)
          unbatched, padded for a ``PackedSequence``. ``"gates"`` adds the values of the gates that the cell has
          (``"forget"``, ``"input"``, ``"output"``). Default: ``False``

    Outputs: output, state
        * **output**: as the input, with D times the size of h as features: h of the last layer for each step.
        * **state**: at the end of each row, as hx. In the dtype of the input, or float32 where a float32 state was
          given; inside the loop it is never less than float32."""

_STEP = """Args:
        input_size: The number of features of the input x.
        hidden_size: The number of units H.
        bias: If ``False``, the cell has no bias. Default: ``True``
        device, dtype: Device and dtype of the parameters."""

_STEP_KEYWORDS = """forget_gate, forget_init: As in the layer."""


def documented(state: str) -> Callable[[_Class], _Class]:
    """Class decorator that fills the places {arguments}, {keywords}, {call} … of a docstring."""

    def fill(cls: _Class) -> _Class:
        if cls.__doc__ is not None:  # None under python -OO
            cls.__doc__ = (
                cls.__doc__.replace("{arguments}", _ARGUMENTS)
                .replace("{no_projection}", _NO_PROJECTION)
                .replace("{keywords}", _KEYWORDS)
                .replace("{call}", _CALL.replace("STATE", state))
                .replace("{step}", _STEP)
                .replace("{step_keywords}", _STEP_KEYWORDS)
            )
        return cls

    return fill
