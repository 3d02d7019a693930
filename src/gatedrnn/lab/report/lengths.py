"""The metric against the length of the sequences: a chart and a table over the lengths of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatedrnn.lab.analysis import finite, over_updates
from gatedrnn.lab.report import text
from gatedrnn.lab.report.document import Chart, Series, Table, Track
from gatedrnn.lab.report.groups import Group, group
from gatedrnn.lab.report.looks import Looks
from gatedrnn.lab.report.measure import Measure
from gatedrnn.lab.report.runs import LabRun


def by_length(groups: Sequence[Group]) -> dict[int, list[Group]]:
    """The groups of each length, the shortest first."""
    lengths = sorted({length for found in groups for run in found.runs if (length := _length(run)) is not None})
    return {
        length: [
            group(found.name, found.model, members)
            for found in groups
            if (members := [run for run in found.runs if _length(run) == length])
        ]
        for length in lengths
    }


def chart(stem: str, title: str, groups: Sequence[Group], looks: Looks, threshold: float | None) -> Chart | None:
    """The metric at the end of training against the length, of complete runs; None without one."""
    measure, chosen = groups[0].measure, looks.of(groups)
    series = []
    for found in groups:
        tracks, lines = [], []
        complete = [run for run in found.runs if run.complete]
        if not complete:
            continue
        for seed in sorted({run.seed for run in complete}):
            ends = {length: run for run in complete if run.seed == seed and (length := _length(run)) is not None}
            ordered = [(length, ends[length]) for length in sorted(ends)]
            values = [run.value("final") for _, run in ordered]
            lines.append([{"length": length, measure.name: run.value("final")} for length, run in ordered])
            lengths = [float(length) for length, _ in ordered]
            tracks.append(Track(seed, 0, lengths, [0.0] * len(lengths), values))
        curve = over_updates(lines, measure.name, "length")
        series.append(Series(found.name, chosen[found.name], curve, {}, tracks))
    note = (
        "Complete runs only. Line: mean over seeds at the last evaluation. Band: ± one standard deviation. "
        "Thin lines: single seeds."
    )
    if not series:
        return None
    return Chart(stem, title, note, measure.label, measure.log, series, threshold=threshold, steps="length T in steps")


def table(groups: Sequence[Group], threshold: float | None, declared: int) -> Table:
    """The metric at the end of training, a column for each length, and the first length that misses the threshold.

    ``declared`` is the number of lengths of the experiment.
    """
    measure, lengths = groups[0].measure, by_length(groups)
    header = ["model", *(f"T={length}" for length in lengths)]
    if threshold is not None:
        header.append(f"first length {_sides(measure)[0]} {text.number(threshold)}")
    rows = []
    for found in groups:
        parts = {length: next((p for p in parts if p.name == found.name), None) for length, parts in lengths.items()}
        ended = {length: None if part is None else _ended(part) for length, part in parts.items()}
        row = [found.name, *(_cell(parts[length], ended[length]) for length in lengths)]
        if threshold is not None:
            row.append(_first_missed(ended, threshold, declared))
        rows.append(tuple(row))
    caption = f"The last {measure.name} of complete runs, mean ± standard deviation over seeds."
    return Table(caption, tuple(header), rows, models=0)


def _ended(part: Group) -> Group | None:
    """The complete runs of a group."""
    runs = [run for run in part.runs if run.complete]
    return group(part.name, part.model, runs) if runs else None


def _cell(part: Group | None, ended: Group | None) -> str:
    if part is None:
        return "—"
    if ended is None:
        return "not complete"
    mean, said = ended.mean("final"), []
    if mean is None:
        said.append(f"{sum(run.outcome == 'diverged' for run in ended.runs)} of {len(ended.runs)} diverged")
    if len(ended.runs) < len(part.runs):
        said.append(f"{len(ended.runs)} of {len(part.runs)} runs complete")
    return text.mean(mean) + (f" ({', '.join(said)})" if said else "")


def _first_missed(ended: Mapping[int, Group | None], threshold: float, declared: int) -> str:
    """The first length whose mean misses the threshold, and the longer ones that do not. Divergence misses it too."""
    known = {length: _misses(part, threshold) for length, part in ended.items() if part is not None}
    missed = [length for length, misses in known.items() if misses]
    if not known:
        return "—"
    if not missed:
        return "none" if len(known) == declared else f"at none of the {len(known)} lengths run"
    first = f"T={missed[0]}" + (" of those run" if any(length < missed[0] for length in ended.keys() - known) else "")
    again = [f"T={length}" for length, misses in known.items() if length > missed[0] and not misses]
    part = ended[missed[0]]
    assert part is not None
    return first + (f" ({_sides(part.measure)[1]} again at {', '.join(again)})" if again else "")


def _misses(part: Group, threshold: float) -> bool:
    mean = part.mean("final")
    if mean is None:
        return True
    return mean.mean > threshold if part.measure.lower_is_better else mean.mean < threshold


def _sides(measure: Measure) -> tuple[str, str]:
    """Where a value lies that misses a threshold, and where one that does not."""
    return ("above", "below") if measure.lower_is_better else ("below", "above")


def _length(run: LabRun) -> int | None:
    length = finite(run.task.get("length"))
    return None if length is None else int(length)
