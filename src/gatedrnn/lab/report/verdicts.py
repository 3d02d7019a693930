"""How a result becomes a verdict on the paper's: the rules, and RULES, their text in the report.

A desk or smoke result is never shown as the paper's setting: its verdict is at most "partial".
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
    "not run: no run of the item was found in the paper's setting or at desk budget. Smoke runs never count.",
    "partial: runs were found, but only at desk budget, or some runs of the paper's setting are missing, unfinished or "
    "stopped by a time budget, or a claim of the paper is not checked or not decided.",
    "agrees, differs: every run of the paper's setting is complete. A number agrees if its distance from the paper's "
    f"is within the {LEVEL} interval of the difference of two means (Welch's; if the paper reports no standard "
    "deviation, the measured one is used for both). An item differs if one of its numbers or claims does.",
    f"A claim holds or does not hold only if the runs decide it beyond their uncertainty, with at least {FEWEST} "
    "seeds; otherwise it is not decided. Comparisons (which model needs fewer updates, which has longer time scales) "
    "are made between runs with the same seed: the factor between two models is a geometric mean over seeds, and its "
    f"whole {LEVEL} interval (Student's, of the mean logarithm) must be on one side of the bound. Claims about how "
    "training ends (fails, diverges) hold if all seeds were trained to the end and all ended in this way, and do not "
    f"hold if {FEWEST} or more seeds ended differently; if both outcomes were equally likely, {FEWEST} seeds would all "
    f"end in this way with probability 1/{2**FEWEST}.",
    "A run that was stopped after n updates shows only that it had not reached the threshold by then: it counts as a "
    "lower bound, never as a failure. A threshold is reached between two evaluations; comparisons use whichever of the "
    "two is less favourable to the claim. If a run is only a bound, its model is assumed to vary over seeds as much as "
    "the model it is compared with.",
    "Times are compared only between runs on the same engine, machine and number of threads. A threshold is reached at "
    "the first evaluation at or beyond it.",
    "If the folder of the runs has a record of update times, time is the number of updates × the time of one update, "
    "measured on an idle machine. A ratio of such times agrees with the paper's if the interquartile range of its "
    f"rounds is within {100 * NEAR:g} % of it, and differs if the whole range is outside.",
    "Updates or seconds to a threshold: if all seeds reached it, mean ± standard deviation with Student's "
    f"{LEVEL} interval. Otherwise the number of seeds that reached it, and the median with a distribution-free "
    "interval between order statistics and the coverage that this number of seeds gives; “>” marks a lower bound.",
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
    """The verdict on an item from its parts: ``budget`` is the best one that has runs."""
    if budget not in COUNTED:
        return NOT_RUN
    found = set(parts)
    if budget != COUNTED[0] or not complete or not found:
        return PARTIAL
    return DIFFERS if DIFFERS in found else AGREES if found == {AGREES} else PARTIAL


def at_most_partial(budget: str, complete: bool, verdict: str) -> str:
    """The verdict on a part; at most partial unless all runs of the paper's setting are complete."""
    return verdict if budget == COUNTED[0] and complete else PARTIAL
