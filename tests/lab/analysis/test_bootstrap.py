"""Intervals over blocks of words, against the normal law and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gatedrnn.lab.analysis.bootstrap import perplexities, ratios


def _blocks(losses: dict[str, Any], targets: dict[str, Any]) -> dict[str, Any]:
    sums = {f"loss {name}": list(values) for name, values in losses.items()}
    sums |= {f"targets {name}": list(values) for name, values in targets.items()}
    return {"samples": 1000, "sums": {"loss": list(np.sum(list(losses.values()), axis=0)), **sums}}


def test_the_interval_is_that_of_the_normal_law_for_many_blocks() -> None:
    random = np.random.default_rng(3)
    n, words = 400, 1000
    often, rare = random.normal(4.0, 0.3, n) * 900, random.normal(7.0, 0.5, n) * 100
    found = perplexities(_blocks({"often": often, "rare": rare}, {"often": [900] * n, "rare": [100] * n}))
    for name, sums, count in (("often", often, 900), ("rare", rare, 100), ("all", often + rare, words)):
        means = sums / count
        half = 1.96 * means.std() / math.sqrt(n)
        estimate = found[name]
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        assert estimate.value == pytest.approx(math.exp(means.mean()), rel=1e-12)
        assert math.log(estimate.low) == pytest.approx(means.mean() - half, abs=0.12 * half)
        assert math.log(estimate.high) == pytest.approx(means.mean() + half, abs=0.12 * half)


def test_words_count_alike_whatever_the_block() -> None:
    """A perplexity is exp of the mean over words, not over blocks."""
    found = perplexities(_blocks({"x": [10.0, 30.0] * 10}, {"x": [10, 10] * 10}))["x"]
    assert found is not None and found.value == pytest.approx(math.exp(2.0))
    found = perplexities(_blocks({"x": [10.0, 60.0] * 10}, {"x": [10, 20] * 10}))["x"]
    assert found is not None and found.value == pytest.approx(math.exp(70 / 30))


def test_two_models_are_compared_on_the_same_words() -> None:
    """What is common to both, which texts are hard, is not in the interval of the ratio."""
    random = np.random.default_rng(4)
    hard, gain = random.normal(5.0, 1.0, 80), random.normal(0.02, 0.005, 80)
    targets = {"x": [1000] * 80}
    ours, theirs = (_blocks({"x": 1000 * losses}, targets) for losses in (hard - gain, hard))
    alone, together = perplexities(ours)["x"], ratios(ours, theirs)["x"]
    assert alone is not None and alone.low is not None and alone.high is not None
    assert together is not None and together.low is not None and together.high is not None
    assert alone.high / alone.low > 1.3
    assert together.value == pytest.approx(math.exp(-gain.mean()), rel=1e-12)
    assert together.low < together.value < together.high < 0.985 and together.high / together.low < 1.004
    same = ratios(ours, ours)["all"]
    assert same is not None and (same.low, same.value, same.high) == (1.0, 1.0, 1.0)


def test_bins_without_words_and_too_few_blocks() -> None:
    found = perplexities(_blocks({"x": [10.0] * 9, "y": [0.0] * 9}, {"x": [10] * 9, "y": [0] * 9}))
    assert found["y"] is None
    assert found["x"] is not None and (found["x"].low, found["x"].high) == (None, None)
    assert found["x"].value == pytest.approx(math.e)


def test_other_words_are_not_compared() -> None:
    first, second = (_blocks({"x": [10.0] * 20}, {"x": [words] * 20}) for words in (10, 11))
    with pytest.raises(ValueError, match="not evaluated on the same words"):
        ratios(first, second)


def test_a_perplexity_beyond_all_numbers_is_infinite() -> None:
    """A model that diverged: exp of its mean loss is no number any more, and its interval none either."""
    found = perplexities(_blocks({"x": np.linspace(7e6, 8e6, 20)}, {"x": [1000] * 20}))["x"]
    assert found is not None and (found.low, found.value, found.high) == (math.inf,) * 3
