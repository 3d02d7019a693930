"""The paper's smaller claims, checked against runs, update times and theory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gatedrnn.lab.experiments import CLAIMS, TextClaim
from gatedrnn.lab.experiments.claims import ITERATED_TIME, NRU_COPY, UNIFORM
from gatedrnn.lab.experiments.copy import CLIPPED
from gatedrnn.lab.report import text, theory, verdicts
from gatedrnn.lab.report.claims import Both, Checked, Diverges, near
from gatedrnn.lab.report.document import Section, Table
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.runs import LabRun
from gatedrnn.lab.report.theory import Theory
from gatedrnn.lab.report.update_times import UpdateTimes, paper_ratio


@dataclass(frozen=True)
class Evidence:
    """What a report is made from."""

    items: Mapping[str, Item]
    runs: Sequence[LabRun]
    times: UpdateTimes | None
    theory: Theory | None


@dataclass(frozen=True)
class Line:
    """A claim with its verdict, and what was observed; None if there is nothing to check it against."""

    claim: TextClaim
    verdict: str
    checked: Checked | None


def lines(evidence: Evidence) -> list[Line]:
    """A line for each claim whose experiment is among the items."""
    return [_CHECKS[claim.label](claim, evidence) for claim in CLAIMS if claim.shown_by in evidence.items]


def section(found: Sequence[Line]) -> Section:
    """The lines as one table."""
    held = {True: "holds", False: "does not hold", None: "not decided"}
    rows = []
    for line in found:
        checked = line.checked
        cells = ("—", "—", "—") if checked is None else (held[checked.holds], checked.what, checked.seen)
        rows.append((line.claim.label, line.verdict, line.claim.sentence, *cells))
    header = ("label", "verdict", "claim in the paper", "result", "checked as", "observed")
    table = Table("Claims of the paper's text.", header, rows)
    labels = tuple(line.claim.label for line in found)
    return Section("text-claims", "Smaller claims of the paper", verdicts=[table], also=labels)


def _nru_copy(claim: TextClaim, evidence: Evidence) -> Line:
    item = evidence.items[claim.shown_by]
    groups, members = item.groups(evidence.runs), item.members(evidence.runs)
    budget = next((name for name in verdicts.COUNTED if groups.get(name)), None)
    if budget is None:
        return Line(claim, verdicts.NOT_RUN, None)
    by_model = {found.model: found for found in groups[budget]}
    checked = Both(Diverges("NRU"), Diverges(CLIPPED)).check(by_model, item.threshold)
    complete = item.is_complete(budget, (run for _, run in members[budget]))
    verdict = verdicts.at_most_partial(budget, complete, verdicts.of_claim(checked))
    return Line(claim, verdict, Checked(checked.what, checked.holds, f"{budget} budget: {checked.seen}"))


def _iterated_time(claim: TextClaim, evidence: Evidence) -> Line:
    models = ("iterated_fast", "fast")
    holds: list[bool | None] = []
    seen = []
    for setting in [] if evidence.times is None else evidence.times.settings():
        ours = evidence.times.ratio(setting, *models) if evidence.times is not None else None
        if ours is None:
            continue
        paper = paper_ratio(evidence.items.values(), setting, *models)
        seen.append(f"{setting.named}: {text.middle(ours)}")
        if paper is not None and setting.budget == verdicts.COUNTED[0]:  # others have other sizes
            holds.append(near(ours, paper))
    if not holds:
        return Line(claim, verdicts.PARTIAL if seen else verdicts.NOT_RUN, _of_times(None, seen) if seen else None)
    checked = _of_times(holds[0], seen)
    return Line(claim, verdicts.of_claim(checked), checked)


def _of_times(holds: bool | None, seen: Sequence[str]) -> Checked:
    what = "the ratio of the times of an update, measured on large psMNIST, is within 5 % of the paper's"
    return Checked(what, holds, "; ".join(seen))


def _uniform(claim: TextClaim, evidence: Evidence) -> Line:
    if evidence.theory is None:
        return Line(claim, verdicts.NOT_RUN, None)
    checked = theory.uniform(evidence.theory)
    return Line(claim, verdicts.of_claim(checked), checked)


_CHECKS: dict[str, Callable[[TextClaim, Evidence], Line]] = {
    NRU_COPY: _nru_copy,
    ITERATED_TIME: _iterated_time,
    UNIFORM: _uniform,
}
