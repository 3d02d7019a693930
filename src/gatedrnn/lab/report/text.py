"""Numbers as text, and escaping of text from records."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from gatedrnn.lab import analysis
from gatedrnn.lab.analysis import Arrivals, Mean, Median, Middle

#: The level of confidence of every interval.
LEVEL = f"{100 * analysis.LEVEL:g} %"

# Control characters, line breaks, marks that change the direction of writing, and characters not allowed in XML.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]+")
# Special characters of Markdown: anywhere, in an address (which would become a link), or at the start of a line.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]#|~$@]|:(?=//)|(?<=www)\.|^[-+=]|^\d+[.)](?= )", re.IGNORECASE)


def clean(value: Any) -> Any:
    """A value from a record with printable text: no control characters, no lone surrogates."""
    if isinstance(value, str):
        return _CONTROL.sub(" ", value.encode("utf-8", "replace").decode("utf-8"))
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [clean(item) for item in value]
    return value


def for_html(text: str) -> str:
    """The text inside an HTML element or a quoted attribute."""
    return html.escape(text, quote=True)


def for_markdown(text: str) -> str:
    """The text inside a line or a table cell of Markdown, which may contain HTML."""
    return html.escape(_MARKDOWN.sub(lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", text), quote=False)


def for_figure(text: str, longest: int = 48) -> str:
    """The text in a figure: a dollar would begin a formula, and a long name would push the axes aside."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return short.replace("$", r"\$")


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; below a million the integer part is exact. Infinity is "never"."""
    if math.isinf(value):
        return "never" if value > 0 else "−∞"
    whole = 10 ** (digits - 1) <= abs(value) < 1e6 or (value == int(value) and abs(value) < 1e6)
    shown = f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), shown).replace("-", "−")


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval, rounded outwards."""
    down, up = (Context(prec=digits, rounding=rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    least = number(float(down.create_decimal_from_float(low)), digits)
    if math.isinf(high):
        return f"more than {least}"
    return f"{least} … {number(float(up.create_decimal_from_float(high)), digits)}"


def mean(found: Mean | None) -> str:
    """Mean ± standard deviation."""
    if found is None:
        return "—"
    if found.std is None:
        return number(found.mean)
    return f"{number(found.mean)} ± {number(found.std, 2)}"


def percent(found: Mean) -> str:
    """Mean ± standard deviation of percentages, with two decimals as the paper writes them."""
    return f"{found.mean:.2f}" + ("" if found.std is None else f" ± {found.std:.2f}")


def middle(found: Middle) -> str:
    """A median and the interquartile range, "1.021 (1.015 … 1.030)"."""
    return f"{found.median:.3f} ({found.low:.3f} … {found.high:.3f})"


def arrivals(found: Arrivals) -> str:
    """When the seeds reached a threshold: the mean with its interval if all did, else how many, and the median."""
    if found.mean is not None:
        interval = ""
        if found.mean.low is not None and found.mean.high is not None:
            interval = f" ({LEVEL}: {number(found.mean.low)} … {number(found.mean.high)})"
        return mean(found.mean) + interval
    return f"{found.reached} of {found.n} reached; median {_median(found.median)}"


def median_only(found: Median) -> str:
    """What is known of a median: a number, a lower bound, or a range."""
    if found.at_least == found.at_most:
        return number(found.at_least)
    if math.isinf(found.at_most):
        return f"> {number(found.at_least)}"
    return f"between {number(found.at_least)} and {number(found.at_most)}"


def _median(found: Median) -> str:
    middle = median_only(found)
    if found.n < 2 or math.isinf(found.low):
        return middle
    high = "∞" if math.isinf(found.high) else number(found.high)
    coverage = math.floor(1000 * found.coverage) / 10  # rounded down
    return f"{middle} (≥ {coverage:g} %: {number(found.low)} … {high})"
