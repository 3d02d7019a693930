"""The metric against the length of the sequences: a chart and a table over the lengths of a task."""

from __future__ import annotations

from collections.abc import Sequence

from gatedrnn.lab.analysis import finite, over_updates
from gatedrnn.lab.report import text
from gatedrnn.lab.report.document import Chart, Series, Table, Track
from gatedrnn.lab.report.groups import Group, group
from gatedrnn.lab.report.looks import Looks
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


def chart(stem: str, title: str, groups: Sequence[Group], looks: Looks, threshold: float | None) -> Chart:
    """The metric at the end of training against the length."""
    measure, chosen = groups[0].measure, looks.of(groups)
    series = []
    for found in groups:
        tracks, lines = [], []
        for seed in sorted({run.seed for run in found.runs}):
            ends = {length: run for run in found.runs if run.seed == seed and (length := _length(run)) is not None}
            ordered = [(length, ends[length]) for length in sorted(ends)]
            values = [run.value("final") for _, run in ordered]
            lines.append([{"length": length, measure.name: run.value("final")} for length, run in ordered])
            lengths = [float(length) for length, _ in ordered]
            tracks.append(Track(seed, 0, lengths, [0.0] * len(lengths), values))
        curve = over_updates(lines, measure.name, "length")
        series.append(Series(found.name, chosen[found.name], curve, {}, tracks))
    note = "Line: mean over seeds at the last evaluation. Band: ± one standard deviation. Thin lines: single seeds."
    return Chart(stem, title, note, measure.label, measure.log, series, threshold=threshold, steps="length T in steps")


def table(groups: Sequence[Group], threshold: float | None) -> Table:
    """The metric at the end of training, a column for each length, and the first length that misses the threshold."""
    measure, lengths = groups[0].measure, by_length(groups)
    header = ["model", *(f"T={length}" for length in lengths)]
    if threshold is not None:
        header.append(f"first length {'above' if measure.lower_is_better else 'below'} {text.number(threshold)}")
    rows = []
    for found in groups:
        parts = {length: next((p for p in parts if p.name == found.name), None) for length, parts in lengths.items()}
        means = {length: None if part is None else part.mean("final") for length, part in parts.items()}
        row = [found.name, *(text.mean(mean) for mean in means.values())]
        if threshold is not None:
            missing = [
                length
                for length, mean in means.items()
                if mean is not None and (mean.mean > threshold if measure.lower_is_better else mean.mean < threshold)
            ]
            row.append(f"T={missing[0]}" if missing else "none")
        rows.append(tuple(row))
    return Table(f"The last {measure.name}, mean ± standard deviation over seeds.", tuple(header), rows, models=0)


def _length(run: LabRun) -> int | None:
    length = finite(run.task.get("length"))
    return None if length is None else int(length)
