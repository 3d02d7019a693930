"""The time of one update of each model, measured separately from the runs, on an idle machine.

Runs share their machine with others, so their own times are not reliable. If there is a record of update times, time is
the number of updates multiplied by the time of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gatedrnn.lab.analysis import Middle, finite, middle_of
from gatedrnn.lab.records import UPDATE_TIMES_FILE, UPDATE_TIMES_KIND, check_schema, read_json
from gatedrnn.lab.report import fields, text
from gatedrnn.lab.report.claims import ratio_of
from gatedrnn.lab.report.items import Item
from gatedrnn.lab.report.runs import LabRun, Slot, UpdateTime, clock_of


@dataclass(frozen=True)
class UpdateTimes:
    """The times by place (seed 0, no setting), and the place of a run without a declaration by its key."""

    by_place: Mapping[Slot, UpdateTime]
    places: Mapping[str, Slot]

    def of(self, run: LabRun) -> UpdateTime | None:
        """The time of an update of this run, if it was measured."""
        slot = run.slot or self.places.get(run.key)
        return None if slot is None else self.by_place.get(_place(slot))

    def retimed(self, run: LabRun) -> LabRun:
        """The run with times computed from its updates; unchanged if its update was not measured."""
        time = self.of(run)
        if time is None:
            return run
        median = middle_of(time.rounds).median
        record = dict(run.record)
        if "updates_a_second" in record:
            record["updates_a_second"] = 1 / median
        epochs = finite(run.metrics[-1].get("epoch")) if run.metrics else None
        if "seconds_an_epoch" in record and epochs:
            record["seconds_an_epoch"] = median * run.last_update / epochs
        metrics = [{**line, "seconds": median * line["update"]} for line in run.metrics]
        clock = f"{time.clock} (time of one update)"
        return replace(run, metrics=metrics, record=record, clock=clock, update_time=time)

    def settings(self) -> list[Slot]:
        """What was measured, without the models, in the order of the file."""
        return list(dict.fromkeys(place._replace(model="") for place in self.measured))

    @property
    def measured(self) -> dict[Slot, UpdateTime]:
        """The times without those that were measured for another setting."""
        return {place: time for place, time in self.by_place.items() if not time.measured_as}

    def ratio(self, setting: Slot, model: str, other: str) -> Middle | None:
        """The time of an update of one model divided by that of another in the same setting."""
        return ratio_of(*(self.by_place.get(setting._replace(model=name)) for name in (model, other)))


def paper_ratio(items: Iterable[Item], setting: Slot, model: str, other: str) -> float | None:
    """The ratio of the times that the paper prints for two models of this grid; None if it prints none."""
    for item in items:
        slots = (slot for several in item.declared.values() for slot in several.values())
        here = any(_place(slot)._replace(model="") == setting for slot in slots)
        times = {name: values["time"].value for name, values in item.values.items() if "time" in values}
        on_task = item.columns.get("time", "").split()[-1:] == [setting.task]
        if here and on_task and model in times and other in times:
            return times[model] / times[other]
    return None


def find(runs: Path, items: Sequence[Item], warnings: list[str]) -> UpdateTimes | None:
    """The update times in the folder of the runs; None without any. Invalid entries are ignored with a warning."""
    path = runs / UPDATE_TIMES_FILE
    if not path.exists():
        return None
    try:
        record = read_json(path)
        check_schema(record, UPDATE_TIMES_KIND, path)
    except (OSError, ValueError) as damage:
        warnings.append(f"{text.clean(str(damage).replace(str(path), UPDATE_TIMES_FILE))}; ignored")
        return None
    wrong: list[tuple[str, str]] = []
    record = fields.kept(text.clean(record), fields.UPDATE_TIMES, wrong)
    warnings += [f"{UPDATE_TIMES_FILE}: {field} {what}; ignored" for field, what in wrong]
    places = {key: slot for item in items for slots in item.declared.values() for key, slot in slots.items()}
    found: dict[Slot, UpdateTime] = {}
    for number, entry in enumerate(record.get("updates", []), start=1):
        try:
            place, time = _entry(entry, record.get("machine", {}), places)
        except ValueError as damage:
            warnings.append(f"{UPDATE_TIMES_FILE}, entry {number}: {damage}; ignored")
            continue
        found[place] = time
    return UpdateTimes(found, places)


def _entry(entry: Any, machine: Mapping[str, Any], places: Mapping[str, Slot]) -> tuple[Slot, UpdateTime]:
    """One model in one setting; ValueError if a field is invalid or missing, or the declaration has changed."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"is {fields.shown(entry)}, expected an object")
    wrong: list[tuple[str, str]] = []
    kept = fields.kept(entry, {**fields.UPDATE_TIME, **fields.SAME_UPDATE}, wrong)
    if wrong:
        raise ValueError("; ".join(f"{field} {what}" for field, what in wrong))
    if lacking := fields.missing(kept, fields.UPDATE_TIME):
        raise ValueError(f"has no {', '.join(lacking)}")
    place = Slot(kept["grid"], kept["budget"], kept["task"], kept["model"], 0)
    if kept["key"] not in places or _place(places[kept["key"]]) != place:
        raise ValueError(f"options differ from those currently declared for {place.named}")
    clock = clock_of({**machine, "engine": kept["engine"]}, {"threads": kept["threads"]})
    rounds = tuple(float(second) for second in kept["rounds"])
    return place, UpdateTime(rounds, clock, kept.get("measured_as", ""))


def _place(slot: Slot) -> Slot:
    return slot._replace(seed=0, setting="")
