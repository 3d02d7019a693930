"""The lines of metrics.jsonl that are evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatedrnn.lab.records import METRICS_FILE
from gatedrnn.lab.report import fields
from gatedrnn.lab.report.text import clean


def evaluations(lines: Sequence[object], metric: str, said: list[str]) -> list[dict[str, Any]]:
    """Each update once and in order, without invalid fields; warnings are appended to ``said``."""
    wanted = fields.evaluation(metric)
    found: dict[int, dict[str, Any]] = {}
    damages: dict[str, list[str]] = {}
    strangers, order, again = [], [], []
    for number, line in enumerate(lines, start=1):
        wrong: list[tuple[str, str]] = []
        evaluation = fields.kept(clean(line), wanted, wrong) if isinstance(line, Mapping) else {}
        if not {"update", "seconds"} <= evaluation.keys():
            strangers.append(number)
            continue
        for field, what in wrong:
            damages.setdefault(field, []).append(f"line {number}: {field} {what}; ignored")
        update = int(evaluation["update"])
        order.append(update)
        if update in found:
            again.append(update)
        else:
            found[update] = evaluation
    said += [f"{METRICS_FILE}, {several[0]}{_and_more(len(several) - 1)}" for several in damages.values()]
    if strangers:
        more = _and_more(len(strangers) - 1)
        said.append(f"{METRICS_FILE}, line {strangers[0]}: not an evaluation with update and seconds; skipped{more}")
    if again:
        said.append(
            f"{METRICS_FILE}: update {again[0]} occurs more than once{_and_more(len(again) - 1)}: two processes may "
            "have written this file; the first line of each update is used"
        )
    elif order != sorted(order):
        said.append(f"{METRICS_FILE}: the updates are not in order; sorted")
    return [found[update] for update in sorted(found)]


def _and_more(count: int) -> str:
    return f" (and {count} more)" if count else ""
