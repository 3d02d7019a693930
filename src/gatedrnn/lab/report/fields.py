"""The fields that the report reads from a run's files, and their types.

Records are untrusted data: a field may be missing, have another type or be out of range. They are validated here, once,
so that later code can rely on them. Fields that are not listed are not read and may have any value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from gatedrnn.lab.analysis import finite

#: The scales of an axis.
SCALES = ("linear", "log")
#: How a run ends.
OUTCOMES = ("finished", "target_reached", "stopped_early", "budget_spent", "diverged")
_MOST_PARTS = 1000  # of a list
_LONGEST = 60  # characters of a wrong value that a warning shows


@dataclass(frozen=True)
class Kind:
    """A type of field: a test of its value, and its name in warnings."""

    words: str
    holds: Callable[[Any], bool]


def _whole(value: Any) -> bool:
    number = finite(value)
    return number is not None and number >= 0 and number == int(number)


def _amount(value: Any) -> bool:
    number = finite(value)
    return number is not None and number >= 0


def _positive(value: Any) -> bool:
    number = finite(value)
    return number is not None and number > 0


def _number_or_null(value: Any) -> bool:
    return value is None or isinstance(value, float) or finite(value) is not None  # NaN and inf count as null


TEXT = Kind("a string", lambda value: isinstance(value, str) and bool(value.strip()))
TEXT_OR_NULL = Kind("a string or null", lambda value: value is None or TEXT.holds(value))
TRUTH = Kind("true or false", lambda value: isinstance(value, bool))
TRUTH_OR_NULL = Kind("true, false or null", lambda value: value is None or isinstance(value, bool))
SEED = Kind("a non-negative integer", lambda value: isinstance(value, int) and _whole(value))
WHOLE = Kind("a non-negative integer", _whole)
WHOLE_OR_NULL = Kind("a non-negative integer or null", lambda value: value is None or _whole(value))
NUMBER_OR_NULL = Kind("a number or null", _number_or_null)
AMOUNT = Kind("a non-negative number", _amount)
AMOUNT_OR_NULL = Kind("a non-negative number or null", lambda value: value is None or _amount(value))
TEXTS = Kind("a list of strings", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))
NUMBERS = Kind(
    "a list of numbers or null",
    lambda value: isinstance(value, list) and len(value) <= _MOST_PARTS and all(map(_number_or_null, value)),
)


def _blocks(value: Any) -> bool:
    """Sums over blocks: for each part of the test data, the sums of the losses and the numbers of samples."""
    sums = value.get("sums") if isinstance(value, Mapping) else None
    if not isinstance(sums, Mapping) or "loss" not in sums:
        return False
    parts = [name.removeprefix("targets ") for name in sums if name.startswith("targets ")]
    lists = [sums[name] for name in ("loss", *(f"targets {part}" for part in parts))]
    lists += [sums.get(f"loss {part}") for part in parts]
    return (
        bool(parts)
        and all(isinstance(numbers, list) and all(map(_amount, numbers)) for numbers in lists)
        and len({len(numbers) for numbers in lists}) == 1
        and sum(map(sum, lists[1 : 1 + len(parts)])) > 0
    )


BLOCKS = Kind("sums over blocks of the test data", _blocks)
POSITIVES = Kind(
    "a list of positive numbers",
    lambda value: isinstance(value, list) and 0 < len(value) <= _MOST_PARTS and all(map(_positive, value)),
)
LIST = Kind("a list", lambda value: isinstance(value, list))
SCALE = Kind(f"{' or '.join(SCALES)}", lambda value: isinstance(value, str) and value in SCALES)
OUTCOME = Kind(f"one of {', '.join(OUTCOMES)}", lambda value: isinstance(value, str) and value in OUTCOMES)

#: Kinds by field name; "*" matches every name.
Fields = Mapping[str, Union[Kind, "Fields"]]

#: The fields that identify a run.
OPTIONS: Fields = {
    "key": TEXT,
    "task": {"name": TEXT},
    "model": {"cell": TEXT, "tied": TRUTH_OR_NULL, "forget_gate": TEXT_OR_NULL, "forget_init": TEXT_OR_NULL},
    "training": {"seed": SEED, "threads": WHOLE_OR_NULL, "device": TEXT_OR_NULL, "target": NUMBER_OR_NULL},
}
#: What a sweep adds to the options: which run of which grid this is.
DECLARED: Fields = {"grid": TEXT, "budget": TEXT, "model": TEXT, "seed": SEED, "task": TEXT, "setting": TEXT}
#: What is measured; from the record, or from the options of a run without one.
MEASURE: Fields = {"metric": TEXT, "lower_is_better": TRUTH, "metric_unit": TEXT_OR_NULL, "metric_scale": SCALE}
NEEDED = ("key", "task.name", "model.cell", "training.seed")
ENVIRONMENT: Fields = {"engine": TEXT_OR_NULL, "processor": TEXT_OR_NULL}
#: The record of update times; each of its entries.
UPDATE_TIMES: Fields = {"machine": {"processor": TEXT_OR_NULL}, "updates": LIST}
UPDATE_TIME: Fields = {
    "grid": TEXT,
    "budget": TEXT,
    "task": TEXT,
    "model": TEXT,
    "key": TEXT,
    "engine": TEXT,
    "threads": WHOLE,
    "rounds": POSITIVES,
}
#: For a setting that was not timed because its updates are the same as those of another one.
SAME_UPDATE: Fields = {"measured_as": TEXT}
_SPREAD: Fields = {"mean": NUMBER_OR_NULL, "std": NUMBER_OR_NULL, "quantiles": {"*": NUMBER_OR_NULL}}
_EVALUATED: Fields = {"update": WHOLE, "epoch": AMOUNT_OR_NULL, "*": NUMBER_OR_NULL}
RECORD: Fields = {
    **MEASURE,
    "outcome": OUTCOME,
    "updates": WHOLE,
    "diverged_at": WHOLE_OR_NULL,
    "seconds": AMOUNT_OR_NULL,
    "updates_a_second": AMOUNT_OR_NULL,
    "final": _EVALUATED,
    "best": _EVALUATED,
    "validation": _EVALUATED,
    "test": {"*": NUMBER_OR_NULL, "bins": {"*": NUMBER_OR_NULL}, "blocks": BLOCKS},
    "seconds_an_epoch": AMOUNT_OR_NULL,
    "measured_time_scales": {"*": _SPREAD},
    "fingerprint": {"*": TEXT},
    "notes": TEXTS,
}


def evaluation(metric: str) -> Fields:
    """The fields of a line of metrics.jsonl; update and seconds are required."""
    return {
        metric: NUMBER_OR_NULL,
        "loss": NUMBER_OR_NULL,
        "epoch": AMOUNT,
        "time_scales": {"*": _SPREAD},
        "stability": {"*": {"saturated": NUMBER_OR_NULL, "gradient_norms": NUMBERS}},
        "update": WHOLE,
        "seconds": AMOUNT,
    }


def kept(value: Mapping[str, Any], fields: Fields, wrong: list[tuple[str, str]], place: str = "") -> dict[str, Any]:
    """The value without its invalid fields; (field, what is wrong) is appended to ``wrong`` for each."""
    found = dict(value)
    for name in value if "*" in fields else [name for name in fields if name in value]:
        kind, item = fields[name if name in fields else "*"], value[name]
        if isinstance(kind, Kind):
            if kind.holds(item):
                continue
            wrong.append((place + name, f"is {shown(item)}, expected {kind.words}"))
        elif isinstance(item, Mapping):
            found[name] = kept(item, kind, wrong, f"{place}{name}.")
            continue
        else:
            wrong.append((place + name, f"is {shown(item)}, expected an object"))
        del found[name]
    return found


def missing(value: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The dotted names that are missing from the value."""

    def has(dotted: str) -> bool:
        item: Any = value
        for name in dotted.split("."):
            if not isinstance(item, Mapping) or name not in item:
                return False
            item = item[name]
        return True

    return [name for name in names if not has(name)]


def shown(value: Any) -> str:
    """The value as JSON, short enough for a line."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}…"
