"""The ledger: every item of the paper with its verdict, and how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gatedrnn.lab.report import verdicts
from gatedrnn.lab.report.document import Section, Table
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.runs import LabRun
from gatedrnn.lab.report.text_claims import Line


def table(
    sections: Sequence[Section], items: Mapping[str, Item], runs: Sequence[LabRun], claims: Sequence[Line]
) -> Table:
    """A row for each table and figure, then one for each smaller claim."""
    rows = [(one.label, one.verdict, _runs(items[one.label], runs), one.title) for one in sections]
    rows += [(line.claim.label, line.verdict, "—", line.claim.sentence) for line in claims]
    caption = (
        "Every table and figure of the paper, and its smaller claims. Runs: complete runs out of those declared; "
        "incomplete: shorter than declared, or with other options."
    )
    return Table(caption, ("label", "verdict", "runs", "description"), rows)


def counts(sections: Sequence[Section], claims: Sequence[Line]) -> str:
    """How many agree, differ, are partial, are not run."""
    said = [f"Summary: {len(sections)} tables and figures of the paper: {_counted(one.verdict for one in sections)}"]
    if claims:
        said.append(f"{len(claims)} smaller claims: {_counted(line.verdict for line in claims)}")
    return "; ".join(said) + "."


def _counted(found: Iterable[str]) -> str:
    count = Counter(found)
    words = {verdicts.AGREES: "agree", verdicts.DIFFERS: "differ"}
    return ", ".join(f"{count[verdict]} {words.get(verdict, verdict)}" for verdict in verdicts.VERDICTS)


def _runs(item: Item, runs: Sequence[LabRun]) -> str:
    if item.theory:
        return "none needed"
    members = item.members(runs)
    said = []
    for budget in verdicts.COUNTED:
        ended = [run for _, run in members.get(budget, []) if item.has_ended(budget, run)]
        if found := members.get(budget):
            rest = f", {len(found) - len(ended)} incomplete" if len(found) > len(ended) else ""
            said.append(f"{budget} {len(ended)} of {len(item.declared[budget])}{rest}")
    return "; ".join(said) or "—"
