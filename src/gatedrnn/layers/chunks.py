"""A long sequence in chunks: truncated backpropagation through time in a custom training loop."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from gatedrnn.cells.base import wide
from gatedrnn.layers.base import RecurrentLayer, StateArgument
from gatedrnn.layers.checks import autocasting, check_dimensions, checked_lengths, state_tuple

_Chunk = tuple[Tensor, Any]
_TOO_LARGE = 2**63  # torch counts in 64 bits


def chunks(
    layer: RecurrentLayer,
    input: Tensor,
    size: SupportsIndex,
    state: StateArgument = None,
    lengths: Tensor | Sequence[int] | None = None,
) -> Iterator[_Chunk]:
    """Yield output and state for each chunk of ``size`` steps of the input; the last chunk may be shorter.

    Each chunk starts with the detached final state of the previous one: values are those of the whole sequence,
    gradients stay within a chunk, and so does memory if ``backward`` is called in the loop. What computes the input,
    such as an encoder before the layer, must then be applied to each chunk in the loop: the first ``backward`` frees
    the graph of an encoder that was applied to the whole sequence, and the second one fails. Otherwise, sum the losses
    and call ``backward`` once, after the loop.

    Args:
        layer: A unidirectional layer of this library.
        input: As the layer takes it: (T, B, I), (B, T, I) with ``batch_first``, or (T, I) unbatched.
        size: Number of steps in a chunk.
        state: The state before the first step; its gradient, if required, comes from the first chunk.
        lengths: (B,): the number of steps of each row. Outputs past it are zero and the state stays that of the last
            step. Chunks after the end of the longest row are left out.

    The state is in the layer's own form. With 16-bit input and under autocast it is float32, like the memory inside the
    loop, so that nothing is rounded between chunks; with float64 input it is float64. DropConnect draws a mask for each
    chunk.

    >>> layer = gatedrnn.GRU(2, 3)
    >>> [tuple(output.shape) for output, state in gatedrnn.chunks(layer, torch.randn(10, 4, 2), 4)]
    [(4, 4, 3), (4, 4, 3), (2, 4, 3)]
    """
    if not isinstance(layer, RecurrentLayer):
        raise TypeError(f"chunks takes a recurrent layer of gatedrnn, got {type(layer).__name__}")
    name = type(layer).__name__
    if layer.bidirectional:
        raise ValueError(f"{name}: a bidirectional layer cannot be run in chunks; use bidirectional=False")
    if isinstance(input, PackedSequence):
        raise TypeError(
            f"{name}: chunks takes a padded tensor and lengths, not a PackedSequence; use pad_packed_sequence"
        )
    check_dimensions(name, input)
    size = _checked_size(size)
    batched = input.dim() == 3
    if lengths is not None and not batched:
        raise ValueError(f"{name}: lengths needs a batch, got unbatched 2-D input")
    steps = input.transpose(0, 1) if batched and layer.batch_first else input
    before = state_tuple(name, layer.cell, state)
    if input.dtype != torch.float64 and (input.dtype.itemsize == 2 or autocasting(input)):
        if before is None:
            sizes = [(layer.num_layers, *steps.shape[1:-1], w) for w in layer.cell.state_sizes(layer.hidden_size)]
            before = tuple(torch.zeros(size, dtype=torch.float32, device=input.device) for size in sizes)
        before = tuple(wide(s) for s in before)
    return _run(layer, input, min(size, max(len(steps), 1)), before, checked_lengths(name, lengths, steps))


def _checked_size(size: SupportsIndex) -> int:
    """As a Python integer, also that of NumPy."""
    wrong = f"size should be of type int, got: {type(size).__name__}"
    if isinstance(size, bool):
        raise TypeError(wrong)
    try:
        found = operator.index(size)
    except TypeError:
        raise TypeError(wrong) from None
    if found < 1:
        raise ValueError(f"size must be at least 1, got {found}")
    if found >= _TOO_LARGE:
        raise ValueError(f"size must be below 2**63, got {found}; the number of steps gives one chunk")
    return found


def _run(
    layer: RecurrentLayer, input: Tensor, size: int, state: tuple[Tensor, ...] | None, lengths: Tensor | None
) -> Iterator[_Chunk]:
    # Split once: slices would make the backward pass of a loss over all chunks quadratic in their number.
    for index, part in enumerate(input.split(size, 1 if input.dim() == 3 and layer.batch_first else 0)):
        left = None if lengths is None else lengths - index * size
        if left is not None and left.numel() and not bool((left > 0).any()):
            return
        output, state = _one(layer, part, state, left)
        yield output, _given(state)
        del output  # and its graph, which would need memory while the next chunk runs


def _one(
    layer: RecurrentLayer, part: Tensor, state: tuple[Tensor, ...] | None, left: Tensor | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The output of a chunk, and its last state, detached."""
    if left is None:
        output, after = layer(part, _given(state))
    else:
        output, after = _ragged(layer, part, state, left.clamp(max=_steps(layer, part)))
    return output, tuple(s.detach() for s in (after if isinstance(after, tuple) else (after,)))


def _ragged(layer: RecurrentLayer, part: Tensor, state: tuple[Tensor, ...] | None, left: Tensor) -> tuple[Tensor, Any]:
    """A chunk of which each row has ``left`` steps. Rows that have ended are not computed: the layer takes none."""
    if bool((left > 0).all()):
        return layer(part, _given(state), lengths=left)  # type: ignore[no-any-return]
    assert state is not None  # in the first chunk no row has ended
    rows, batch = (left > 0).nonzero().squeeze(-1), 0 if layer.batch_first else 1
    some, after = layer(
        part.index_select(batch, rows), _given(tuple(s.index_select(1, rows) for s in state)), lengths=left[rows]
    )
    output = some.new_zeros(*part.shape[:-1], some.shape[-1]).index_copy(batch, rows, some)
    ended = after if isinstance(after, tuple) else (after,)
    return output, tuple(s.index_copy(1, rows, new) for s, new in zip(state, ended, strict=True))


def _given(state: tuple[Tensor, ...] | None) -> Any:
    """The state as a layer takes and returns it."""
    return state if state is None or len(state) > 1 else state[0]


def _steps(layer: RecurrentLayer, part: Tensor) -> int:
    return part.shape[1 if layer.batch_first else 0]
