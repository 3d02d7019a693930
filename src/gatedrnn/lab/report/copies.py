"""Copies of a run count once: a copy is not another seed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from gatedrnn.lab.analysis import finite

if TYPE_CHECKING:
    from gatedrnn.lab.report.runs import LabRun, Slot


def without_copies(runs: Sequence[LabRun], warnings: list[str]) -> list[LabRun]:
    """Each run once, as far as it got; a warning for each that is left out, or that only seems to be a copy."""
    # A run may be declared at two budgets, and be in the folder of each.
    budgets = {run.key: run.slot.budget for run in reversed(runs) if run.slot is not None}
    alike: dict[Hashable, list[LabRun]] = {}
    for run in runs:
        budget = budgets.get(run.key) if run.slot is None else run.slot.budget
        alike.setdefault((run.key, budget), []).append(run)
    different = [run for several in alike.values() for run in _different(several, warnings)]
    return _one_for_each_place(different, warnings)


def _different(runs: Sequence[LabRun], warnings: list[str]) -> list[LabRun]:
    """Of runs with one key, those that are not copies: texts may differ under the same names, for example."""
    found: list[LabRun] = []
    for run in runs:
        place = next((i for i, other in enumerate(found) if _is_copy(run, other)), None)
        if place is not None:
            found[place], worse = _longer(found[place], run)
            warnings.append(_counted_once(worse, found[place]))
            continue
        unexplained = next((o for o in found if not _have_different_data(run, o) and not _have_one_place(run, o)), None)
        if unexplained is not None:
            warnings.append(
                f"{run.name}: the same options as {unexplained.name}, but different results; both are counted"
            )
        found.append(run)
    return found


def _one_for_each_place(runs: Sequence[LabRun], warnings: list[str]) -> list[LabRun]:
    """Of runs that a sweep declared as the same one, the longest: a seed counts once."""
    places: dict[Slot, LabRun] = {}
    for run in runs:
        if run.slot is not None:
            other = places.setdefault(run.slot, run)
            places[run.slot] = _longer(other, run)[0]
    kept = []
    for run in runs:
        chosen = run if run.slot is None else places[run.slot]
        if run is chosen:
            kept.append(run)
        elif _is_copy(run, chosen):
            warnings.append(_counted_once(run, chosen))
        else:
            different = "results" if run.key == chosen.key else "options"
            warnings.append(
                f"{run.name}: declared as the same run as {chosen.name}, but with different {different}; not counted"
            )
    return kept


def _counted_once(copy: LabRun, run: LabRun) -> str:
    return f"{copy.name}: the same run as {run.name}; counted once"


def _longer(first: LabRun, second: LabRun) -> tuple[LabRun, LabRun]:
    """The one that got further, then the other one."""
    further = (second.complete, second.last_update) > (first.complete, first.last_update)
    return (second, first) if further else (first, second)


def _is_copy(run: LabRun, other: LabRun) -> bool:
    return not _have_different_data(run, other) and _have_same_results(run, other)


def _have_different_data(run: LabRun, other: LabRun) -> bool:
    """Whether both are known to be trained on different data."""
    return bool(run.fingerprint and other.fingerprint) and run.fingerprint != other.fingerprint


def _have_one_place(run: LabRun, other: LabRun) -> bool:
    """Whether a sweep declared them as the same run: only one of them counts."""
    return run.slot is not None and run.slot == other.slot


def _have_same_results(run: LabRun, other: LabRun) -> bool:
    """Whether they measured the same wherever both measured: one of them may have been stopped earlier."""
    ours, theirs = _results(run), _results(other)
    return all(ours[update] == theirs[update] for update in ours.keys() & theirs.keys())


def _results(run: LabRun) -> dict[int, float]:
    values = {int(line["update"]): finite(line.get(run.measure.name)) for line in run.metrics}
    return {update: value for update, value in values.items() if value is not None}
