"""One colour and one marker per gate, the same in every figure; distinguishable without colour vision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Look(NamedTuple):
    """How a gate is drawn."""

    colour: str
    marker: str


# The paper's blue, orange and red; the others from Okabe and Ito's set. Lightness differs where hue may not be seen.
_KNOWN = {
    "softsign": Look("#0072B2", "v"),
    "sigmoid": Look("#E69F00", "o"),
    "refine": Look("#009E73", "s"),
    "fast": Look("#C1121F", "D"),
    "iterated_fast": Look("#CC79A7", "^"),
    "polynomial": Look("#333333", "P"),
}
_FURTHER = (
    Look("#56B4E9", "X"),
    Look("#7A5195", "<"),
    Look("#8C6D31", ">"),
    Look("#7F7F7F", "p"),
    Look("#004D40", "h"),
    Look("#D6A5A5", "*"),
)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each gate: its own, or the next free one for a gate of the user's."""
    strangers = [name for name in names if name not in _KNOWN]
    extra = {name: _FURTHER[i % len(_FURTHER)] for i, name in enumerate(strangers)}
    return {name: _KNOWN.get(name) or extra[name] for name in names}
