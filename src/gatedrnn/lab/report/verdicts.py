"""How a result of ours becomes a verdict on the paper's. The rules stand here, and RULES prints them.

A desk or smoke result is never shown as the paper's setting: the best it can be is "partial".
"""

from __future__ import annotations

from collections.abc import Iterable

from gatedrnn.lab.analysis import Mean, half_width_of_difference
from gatedrnn.lab.report.claims import FEWEST, NEAR, Checked
from gatedrnn.lab.report.text import LEVEL

#: The verdicts. The page has a colour for each by its first word.
VERDICTS = AGREES, DIFFERS, PARTIAL, NOT_RUN = "agrees", "differs", "partial", "not run"
#: The budgets whose runs count.
COUNTED = ("paper", "desk")

RULES = (
    "not run: no run of the item in the paper's setting or at desk budget was found. Smoke runs never count.",
    "partial: runs were found, but at desk budget only, or some of the paper's setting are missing, unfinished or "
    "stopped by a time budget, or a sentence of the paper is not checked or not decided by them.",
    "agrees, differs: every run of the paper's setting ended. A number agrees if it lies no farther from the paper's "
    f"than the {LEVEL} interval of the difference of two means allows (Welch's; where the paper prints no "
    "deviation, ours is taken for both). An item differs if one of its numbers or sentences does.",
    "A sentence holds, or does not hold, only beyond the uncertainty of the runs, and with at least "
    f"{FEWEST} seeds; else it is not decided. Comparisons (who needs fewer updates, whose time scales are longer) are "
    "made between runs of the same seed: the factor between two models is a geometric mean over seeds, and the whole "
    f"{LEVEL} interval around it (Student's, of the mean logarithm) must lie on one side of the bound. Sentences "
    "on how training ends (fails, diverges) hold if all seeds were trained to the end and all ended so, and do not "
    f"hold if {FEWEST} seeds or more ended otherwise; {FEWEST} alike come by chance in one of {2**FEWEST} cases if "
    "each were a coin.",
    "A run that was cut after n updates shows only that it had not arrived by then: it counts as a bound, never as a "
    "failure. A run arrives between two evaluations; comparisons take whichever of the two speaks against the "
    "sentence. Where a run is a bound, its model is taken to scatter as the one it is compared with.",
    "Times are compared only between runs on the same engine, machine and number of threads. A threshold is reached at "
    "the first evaluation at or beyond it.",
    "Where a record of update times lies beside the runs, time is updates × the time of one update measured on a quiet "
    "machine. A ratio of such times agrees with the paper's if the middle half of its rounds lies within "
    f"{100 * NEAR:g} % of it, and differs if all of that half lies outside.",
    "Updates or seconds to a threshold: where all seeds reached it, mean ± standard deviation with Student's "
    f"{LEVEL} interval. Where some did not, how many did, and the median, with an interval between order statistics "
    "that is free of assumptions and given with the coverage that so few seeds allow; “>” is a lower bound.",
)


def of_number(ours: Mean | None, paper: float, paper_seeds: int, paper_std: float | None = None) -> str:
    """The verdict on one number that every run of the paper's setting gave."""
    half = None if ours is None else half_width_of_difference(ours, max(paper_seeds, 1), paper_std)
    if ours is None or half is None:
        return PARTIAL
    return AGREES if abs(ours.mean - paper) <= half else DIFFERS


def of_claim(checked: Checked) -> str:
    """The verdict on one sentence that was checked in the paper's setting."""
    return PARTIAL if checked.holds is None else AGREES if checked.holds else DIFFERS


def of_item(budget: str | None, complete: bool, parts: Iterable[str]) -> str:
    """The verdict on an item from its parts: ``budget`` is the best one of which there are runs."""
    if budget not in COUNTED:
        return NOT_RUN
    found = set(parts)
    if budget != COUNTED[0] or not complete or not found:
        return PARTIAL
    return DIFFERS if DIFFERS in found else AGREES if found == {AGREES} else PARTIAL


def at_most_partial(budget: str, complete: bool, verdict: str) -> str:
    """The verdict on a part, lowered where the runs are not all of the paper's setting."""
    return verdict if budget == COUNTED[0] and complete else PARTIAL
