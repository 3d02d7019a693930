"""Bootstrap intervals for perplexities: blocks of words are drawn with replacement, for two models the same blocks.

The losses of neighbouring words depend on each other, those of blocks of many words hardly do; therefore blocks are
drawn. The interval shows how much the perplexity of these weights could change on another text of the same kind and
length; it does not account for other seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatedrnn.lab.analysis.seeds import LEVEL

#: The name of all words together, beside those of the bins.
ALL = "all"
_DRAWS = 4000
_SEED = 0
_FEWEST = 10  # blocks
_LOSS, _TARGETS = "loss", "targets"


@dataclass(frozen=True)
class Estimate:
    """A perplexity, or the ratio of two, and its interval; None if there are too few blocks."""

    value: float
    low: float | None
    high: float | None


def perplexities(blocks: Mapping[str, Any]) -> dict[str, Estimate | None]:
    """The perplexities from the blocks of a test record: by bin, and of all words. None for a bin without words."""
    drawn = _draws(len(_sums(blocks)[ALL][0]))
    return {
        name: None if not counts.sum() else _estimate(losses, counts, drawn)
        for name, (losses, counts) in _sums(blocks).items()
    }


def ratios(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Estimate | None]:
    """The perplexity of the first model over that of the second, on the same words.

    Raises ValueError if the blocks are not of the same words.
    """
    ours, theirs = _sums(first), _sums(second)
    if ours.keys() != theirs.keys() or any(not np.array_equal(ours[name][1], theirs[name][1]) for name in ours):
        raise ValueError("the two models were not evaluated on the same words")
    drawn = _draws(len(ours[ALL][0]))
    return {
        name: None if not counts.sum() else _estimate(losses - theirs[name][0], counts, drawn)
        for name, (losses, counts) in ours.items()
    }


def _sums(blocks: Mapping[str, Any]) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """By name, the sums of the losses and the numbers of words in each block."""
    arrays = {name: np.asarray(sums, dtype=np.float64) for name, sums in blocks["sums"].items()}
    bins = [name.removeprefix(f"{_TARGETS} ") for name in arrays if name.startswith(f"{_TARGETS} ")]
    found = {name: (arrays[f"{_LOSS} {name}"], arrays[f"{_TARGETS} {name}"]) for name in bins}
    found[ALL] = (arrays[_LOSS], np.sum([counts for _, counts in found.values()], axis=0))
    return found


def _draws(count: int) -> NDArray[np.int64]:
    """For each draw, how often it contains each block."""
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(count, np.full(count, 1 / count), size=_DRAWS)


def _estimate(losses: NDArray[np.float64], counts: NDArray[np.float64], drawn: NDArray[np.int64]) -> Estimate:
    sums, words = drawn @ losses, drawn @ counts
    means = sums[words > 0] / words[words > 0]
    # Quantiles of the losses: those of perplexities would be NaN between two infinite values.
    ends = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    with np.errstate(over="ignore"):  # then it is infinite
        value, low, high = np.exp([losses.sum() / counts.sum(), *ends]).tolist()
    return Estimate(value, None, None) if len(losses) < _FEWEST else Estimate(value, low, high)
