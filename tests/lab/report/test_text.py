"""How numbers and strangers' words are written."""

from __future__ import annotations

import math

import pytest

from gatedrnn.lab.analysis import Arrival, arrivals_of, mean_of
from gatedrnn.lab.report import text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (1183.0, "1183"),
        (15720.4, "15720"),
        (975.84, "975.8"),
        (0.00016081, "0.0001608"),
        (5.3e-05, "5.3e−5"),
        (-0.25, "−0.25"),
        (-7.0, "−7"),
        (1.5e12, "1.5e12"),
        (math.inf, "never"),
    ],
)
def test_number(value: float, expected: str) -> None:
    assert text.number(value) == expected


def test_means_and_arrivals() -> None:
    assert text.mean(mean_of([1.0, 2.0, 3.0])) == "2 ± 1"
    assert text.mean(mean_of([4.0])) == "4"
    assert text.mean(None) == "—"

    def arrivals(*at: float | None) -> str:
        return text.arrivals(arrivals_of([Arrival(value, 2500.0) for value in at]))

    assert arrivals(1150) == "1150"
    assert arrivals(1150, 1200, 1250) == "1200 ± 50 (95 %: 1076 … 1324)"
    assert arrivals(1150, 1200, None) == "2 of 3 reached; median 1200 (≥ 75 %: 1150 … ∞)"
    assert arrivals(1150, None, None) == "1 of 3 reached; median > 2500 (≥ 75 %: 1150 … ∞)"
    assert arrivals(None) == "0 of 1 reached; median > 2500"
    diverged = arrivals_of([Arrival(None, math.inf)] * 3)
    assert text.arrivals(diverged) == "0 of 3 reached; median never"
    stopped = arrivals_of([Arrival(100, 200), Arrival(500, 500), Arrival(None, 150)])
    assert text.arrivals(stopped).startswith("2 of 3 reached; median between 150 and 500")


def test_intervals_are_rounded_outwards() -> None:
    assert text.interval(1.5079, 2.341) == "1.5 … 2.35"
    assert text.interval(0.8789, 1234.5) == "0.878 … 1240"
    assert text.interval(1.8199, math.inf) == "more than 1.81"
    assert text.interval(0.0, 2.0) == "0 … 2"


def test_a_coverage_is_never_more_than_it_is() -> None:
    five = arrivals_of([*(Arrival(at, 2500.0) for at in (100, 200, 300, 400)), Arrival(None, 2500.0)])
    assert five.median.coverage == 0.9375
    assert text.arrivals(five) == "4 of 5 reached; median 300 (≥ 93.7 %: 100 … ∞)"


def test_words_are_made_harmless() -> None:
    assert text.for_html("</script><b a='\"'>&") == "&lt;/script&gt;&lt;b a=&#x27;&quot;&#x27;&gt;&amp;"
    assert text.for_markdown("a|b<i>*x*[y](z)`") == "a\\|b&lt;i&gt;\\*x\\*\\[y\\](z)\\`"
    assert text.for_figure("a$b$", 10) == r"a\$b\$"
    assert text.for_figure("x" * 20, 10) == "x" * 9 + "…"
    dirty = {"a\x00b": ["\ud800", "line\nline\u2028", 3, None, {"k": 0.5}]}
    assert text.clean(dirty) == {"a b": ["?", "line line ", 3, None, {"k": 0.5}]}
