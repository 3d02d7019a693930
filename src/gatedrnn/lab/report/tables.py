"""Tables of groups of runs: results, updates to the threshold, which model was first, times, final time scales."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from gatedrnn.lab.analysis import finite, mean_of, middle_of, paired, time_scale_layers
from gatedrnn.lab.analysis.bootstrap import Estimate, perplexities, ratios
from gatedrnn.lab.report import text
from gatedrnn.lab.report.document import Table
from gatedrnn.lab.report.groups import Group, clocks_of, describe
from gatedrnn.lab.report.runs import LabRun, Slot

WALL_CLOCK = "Wall-clock times of runs that may have shared their machine with others: do not compare them."


def results(groups: Sequence[Group], thresholds: Sequence[float]) -> Table:
    """What each model reached, in how many updates to each threshold, and how its runs ended."""
    metric = groups[0].measure.name
    header = ["model", "seeds", f"best {metric}", f"last {metric}"]
    header += [f"updates to {metric} {text.number(threshold)}" for threshold in thresholds]
    rows = []
    for found in groups:
        means = (text.mean(found.mean(which)) + _not_counted(found) for which in ("best", "final"))
        row = [found.name, str(len(found.runs)), *means]
        row += [text.arrivals(found.arrivals(threshold)) for threshold in thresholds]
        rows.append((*row, _outcomes(found)))
    place = "On validation data: mean" if any("validation" in r.record for f in groups for r in f.runs) else "Mean"
    caption = f"{place} ± standard deviation over seeds."
    if any(run.outcome == "target_reached" for found in groups for run in found.runs):
        caption += " Runs end at their target, so their best and last values do not rank the models."
    return Table(caption, (*header, "how the runs ended"), rows, models=0)


def selected(groups: Sequence[Group]) -> Table | None:
    """The best validation result, its epoch and the test result of its weights; None without such runs."""
    metric = groups[0].measure.name
    rows = []
    for found in groups:
        ended = [run for run in found.counted if "validation" in run.record or run.tested is not None]
        if not ended:
            continue
        chosen = [run.record.get("validation", {}) for run in ended]
        columns = [[finite(one.get(name)) for one in chosen] for name in (metric, "epoch")]
        columns.append([run.tested for run in ended])
        seeds = str(len(ended)) if len(ended) == len(found.runs) else f"{len(ended)} of {len(found.runs)}"
        rows.append((found.name, seeds, *(_mean_of(column) for column in columns)))
    caption = "Best validation result, its epoch, and the test result with the weights of that epoch, over seeds."
    header = ("model", "seeds", f"validation {metric}", "at epoch", f"test {metric}")
    return Table(caption, header, rows, models=0) if rows else None


def parts(groups: Sequence[Group], baseline: str = "sigmoid") -> Table | None:
    """The perplexity in each part of the test data with its interval, and its ratio to that of the baseline on the same
    words, if both have the same length of training; None without such runs."""
    tested = {
        (found.name, run.seed): run for found in groups for run in found.runs if "blocks" in run.record.get("test", {})
    }
    rows = []
    for (model, seed), run in tested.items():
        own, other = run.record["test"]["blocks"], None if model == baseline else tested.get((baseline, seed))
        compared = {}
        if other is not None and all(
            run.training.get(name) == other.training.get(name) for name in ("epochs", "updates")
        ):
            with suppress(ValueError):  # on other words
                compared = ratios(own, other.record["test"]["blocks"])
        for name, estimate in perplexities(own).items():
            rows.append((model, str(seed), name, *_estimate(estimate), *_estimate(compared.get(name))))
    header = ("model", "seed", "words", "test perplexity", text.LEVEL, f"÷ {baseline}", text.LEVEL)
    caption = (
        "Test perplexity by word frequency. Intervals: bootstrap over blocks of words, for a ratio over the same "
        "blocks of both models; they account for the choice of the text, not of the seed. No ratio if the two models "
        "have different numbers of epochs."
    )
    return Table(caption, header, rows, models=0) if rows else None


def search(members: Sequence[tuple[Slot, LabRun]], chosen: Collection[LabRun]) -> Table | None:
    """Every setting of a search, with the selected one; None without a search."""
    rows = [
        (slot.model, slot.setting, str(slot.seed), _value(run, "best"), run.ended, "yes" if run in chosen else "—")
        for slot, run in sorted(members, key=lambda member: (*member[0][3:5], member[1].name))
        if slot.setting
    ]
    header = ("model", "setting", "seed", "best on validation data", "how the run ended", "selected")
    caption = "Settings of the search; the one with the best validation result is selected."
    return Table(caption, header, rows, models=0) if rows else None


def firsts(groups: Sequence[Group], threshold: float, favourite: str = "fast") -> Table | None:
    """For how many seeds the favourite reached the threshold before each other model; None if it was not run."""
    ours = next((found for found in groups if found.name == favourite), None)
    others = [found for found in groups if found is not ours]
    if ours is None or not others:
        return None
    rows = []
    for other in others:
        count = paired(ours.arrival_of_each(threshold), other.arrival_of_each(threshold))
        if not count.n:
            continue
        p = "—" if count.p is None else text.number(count.p, 3)
        rows.append((other.name, f"{count.first} of {count.n}", str(count.second), str(count.ties), str(count.open), p))
    header = ("other model", f"{favourite} first", "other first", "at the same evaluation", "undecided", "p")
    caption = (
        f"Seeds for which {favourite} reached {text.number(threshold)} in fewer updates than the other model. "
        "Undecided: neither reached it, or one was stopped too early to tell. p: two-sided sign test over the decided "
        "seeds."
    )
    return Table(caption, header, rows, models=0) if rows else None


def times(groups: Sequence[Group], threshold: float | None) -> list[Table]:
    """Training time, one table for each clock: times of different engines, machines or threads are not comparable."""
    tables = []
    by_epochs = any(run.seconds_an_epoch is not None for found in groups for run in found.runs)
    for clock in clocks_of(groups):
        rows = []
        for found in (part for part in (whole.on(clock) for whole in groups) if part is not None):
            # A time that was measured separately is one number for all seeds: it has no spread over them.
            timed = found.runs[:1] if found.runs[0].update_time else found.runs
            speeds = [_updates_per_second(run) for run in timed]
            known = [speed for speed in speeds if speed is not None]
            of = f" (of {len(known)} runs)" if 0 < len(known) < len(timed) else ""
            row = [found.name, str(len(found.runs)), _mean_of(known) + of]
            if by_epochs:
                row.append(_mean_of([run.seconds_an_epoch for run in timed]))
            if threshold is not None:
                row.append(text.arrivals(found.arrivals(threshold, "seconds")))
            rows.append(tuple(row))
        header = ["model", "seeds", "updates per second"]
        if by_epochs:
            header.append("seconds per epoch")
        if threshold is not None:
            header.append(f"training seconds to {text.number(threshold)}")
        caption = f"Times measured on: {clock}."
        if any(run.update_time is None for found in groups for run in found.runs if run.clock == clock):
            caption += f" {WALL_CLOCK}"
        elif threshold is not None:
            caption += " The spread of the seconds is that of the updates over seeds."
        tables.append(Table(caption, tuple(header), rows, models=0))
    return tables


def time_scales(groups: Sequence[Group]) -> Table | None:
    """The final time scales, in steps; None if no run recorded any."""
    rows = []
    for found in groups:
        for layer in time_scale_layers([run.metrics for run in found.counted]):
            columns = [("mean",), ("std",), ("quantiles", "0.05"), ("quantiles", "0.5"), ("quantiles", "0.95")]
            last = [_last_scales(run, layer) for run in found.counted]
            measured = [r.record.get("measured_time_scales", {}).get(layer, {}) for r in found.counted if r.record]
            for name, scales in (("bias", last), ("data", measured)):
                if any(scales):
                    means = (_mean_at(scales, path) for path in columns)
                    rows.append((found.name, layer, name + _not_counted(found), *means))
    header = ("model", "layer", "computed from", "mean", "std", "5 %", "median", "95 %")
    caption = (
        "Time scales of the units, averaged over seeds: −1/log φ(b) from the bias at the last evaluation, and "
        "−1/mean log f measured on validation data after training, of the runs that have ended. Runs that ended at "
        "different updates are compared where they ended."
    )
    return Table(caption, header, rows, models=0) if rows else None


def all_runs(runs: Iterable[LabRun]) -> Table:
    """All runs, one per line."""
    rows = [
        (
            run.name,
            describe(run.task),
            describe(run.model),
            str(run.seed),
            run.ended,
            _value(run, "best"),
            _value(run, "final"),
            _seconds(run),
            run.clock,
        )
        for run in runs
    ]
    header = ("run", "task", "model", "seed", "how it ended", "best", "last", "training seconds", "measured on")
    return Table(f"All runs that were read. {WALL_CLOCK}", header, rows)


def _updates_per_second(run: LabRun) -> float | None:
    if run.update_time is not None:  # known for an unfinished run too
        return 1 / middle_of(run.update_time.rounds).median
    return finite(run.record.get("updates_a_second"))


def _estimate(found: Estimate | None) -> tuple[str, str]:
    if found is None:
        return "—", "—"
    if math.isinf(found.value):
        return "infinite", "—"
    known = found.low is not None and found.high is not None
    return text.number(found.value), text.interval(found.low or 0.0, found.high or 0.0, 4) if known else "—"


def _outcomes(found: Group) -> str:
    ends: dict[str, list[str]] = {}
    for run in found.runs:
        ends.setdefault(run.ended, []).append(str(run.seed))
    if len(ends) == 1:
        return next(iter(ends))
    return "; ".join(f"{end} (seed {', '.join(seeds)})" for end, seeds in ends.items())


def _not_counted(found: Group) -> str:
    """How many runs a mean is of, if not of all."""
    n = len(found.counted)
    rest = len(found.runs) - n
    return f" (n = {n}, {rest} incomplete not counted)" if rest else ""


def _last_scales(run: LabRun, layer: str) -> dict[str, Any]:
    recorded = [line.get("time_scales", {}).get(layer) for line in run.metrics]
    return next((scales for scales in reversed(recorded) if scales is not None), {})


def _mean_of(values: Sequence[float | None]) -> str:
    """Mean ± standard deviation; a dash if there is no value, or one is missing."""
    known = [value for value in values if value is not None]
    return text.mean(mean_of(known)) if known and len(known) == len(values) else "—"


def _mean_at(statistics: Sequence[dict[str, Any]], path: Sequence[str]) -> str:
    values = []
    for found in statistics:
        item: Any = found
        for key in path:
            item = item.get(key) if isinstance(item, dict) else None
        values.append(finite(item))
    known = [value for value in values if value is not None]
    return text.number(mean_of(known).mean) if known and len(known) == len(values) else "—"


def _value(run: LabRun, which: str) -> str:
    value = run.value(which)
    return "—" if value is None else f"{run.measure.name} {text.number(value)}"


def _seconds(run: LabRun) -> str:
    seconds = finite(run.record.get("seconds"))
    if seconds is None and run.metrics:
        seconds = finite(run.metrics[-1]["seconds"])
    return "—" if seconds is None else text.number(seconds)
