"""The example with which a model is exported."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor
from torch.utils._pytree import tree_map

_Example = TypeVar("_Example")


def distinct(example: _Example) -> _Example:
    """The example with copies of tensors that it contains twice: torch.export takes an object for one input, wherever
    it is, so that the program of (x, (zeros, zeros)) would read the second state from the first."""
    seen: set[int] = set()

    def own(leaf: object) -> object:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) in seen:
            return leaf.clone()
        seen.add(id(leaf))
        return leaf

    copied: _Example = tree_map(own, example)
    return copied
