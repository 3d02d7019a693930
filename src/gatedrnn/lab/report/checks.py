"""How each sentence of the paper is checked. The sentences themselves are part of the declared experiments."""

from __future__ import annotations

from gatedrnn.lab.report.claims import (
    Before,
    Both,
    Claim,
    Comparable,
    Diverges,
    Fails,
    LongestTimeScale,
    Stable,
    StaysPut,
    TimeRatio,
)
from gatedrnn.lab.report.result_claims import Best, SmallerGain

#: The gates that the paper compares with the fast one.
GATES = ("softsign", "sigmoid", "refine")
_BASELINES = ("chrono", "JANET", "NRU")

#: How the paper's sentences are checked; the clock is that of the figure.
CHECKS: dict[str, Claim] = {
    "fast is first among the gates": Before("fast", GATES),
    "iterated_fast is faster still": Before("iterated_fast", ("fast",)),
    "NRU needs the fewest updates": Before("NRU", ("fast", "iterated_fast")),
    "softsign fails": Fails("softsign", "fast"),
    "NRU diverges": Diverges("NRU"),
    "the time scales of fast end orders of magnitude above the others": LongestTimeScale("fast", (*GATES, "chrono")),
    "the time scales of chrono stay at their initial values": StaysPut("chrono"),
    "fast is comparable to NRU, whose updates take longer": Comparable("fast", "NRU"),
    "fast takes 3 % more time than sigmoid (14.7/14.3), refine 59 % more (22.7/14.3)": Both(
        TimeRatio("fast", "sigmoid", 14.7 / 14.3, "psmnist"), TimeRatio("refine", "sigmoid", 22.7 / 14.3, "psmnist")
    ),
    "fast is best on each task": Best("fast", (*GATES, *_BASELINES), ("smnist", "psmnist", "scifar")),
    # The paper names no accuracy.
    "fast reaches a high accuracy in as few epochs as refine": Comparable("fast", "refine", at=0.9),
    # The paper names these two tasks.
    "a GRU gains from the fast gate as an LSTM does, but slightly less": SmallerGain(
        "fast-GRU", "sigmoid-GRU", ("fast", "sigmoid"), ("psmnist", "scifar")
    ),
    "NRU is best on psMNIST, fast is best there among the gates": Both(
        Best("NRU", (*GATES, "UR", "fast", "UF", "chrono", "JANET"), ("psmnist",)),
        Best("fast", (*GATES, "UR"), ("psmnist",)),
    ),
    "refine and fast are better than sigmoid on rare words": Both(
        Best("refine", ("sigmoid",), ("ptb",), "under 100"), Best("fast", ("sigmoid",), ("ptb",), "under 100")
    ),
    "fast is best on all words together": Best("fast", ("sigmoid", "refine"), ("ptb",)),
    "NRU diverges and is not in the table": Diverges("NRU"),
    "fast is stable on a length of 16,000, where the others diverge": Both(
        Stable("fast"), Both(Diverges("sigmoid"), Both(Diverges("refine"), Diverges("UR")))
    ),
}
