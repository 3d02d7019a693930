"""The items of the paper that need no training, from the output folder of ``gatedrnn theory``.

Its numbers are deterministic: a claim of the paper holds or does not hold, and is undecided only if a gate is missing.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gatedrnn.lab.analysis import finite
from gatedrnn.lab.records import read_json
from gatedrnn.lab.report import text
from gatedrnn.lab.report.checks import GATES
from gatedrnn.lab.report.claims import Checked, all_of
from gatedrnn.lab.report.document import Picture, Table
from gatedrnn.theory import files
from gatedrnn.theory.numbers import SCHEMA_VERSION

_PNG = b"\x89PNG\r\n\x1a\n"
_LARGEST = 10_000_000  # bytes of a picture
_ALL = (*GATES, "fast")
_PERCENT = 1.0  # the largest deviation of a curve from its derived law
_EVEN, _SKEWED, _LONG = 0.01, 0.05, "100"  # distances of distribution functions, and steps
_PLATEAU = (40, 0.75)  # iteration, and the value of f halfway from 0.5 to 1


@dataclass(frozen=True)
class Theory:
    """The output of ``gatedrnn theory`` in a folder."""

    folder: Path
    numbers: dict[str, Any]


def find(runs: Path, given: Path | None, warnings: list[str]) -> Theory | None:
    """The results in the given folder, else the first in, below or next to that of the runs; None without any.

    Raises ValueError if those of the given folder cannot be read.
    """
    if given is not None:
        if not (given / files.NUMBERS).is_file():
            raise ValueError(f"no results of gatedrnn theory in {given}: it has no {files.NUMBERS}")
        return Theory(given, _numbers(given))
    beside = runs.resolve().parent / files.NUMBERS
    for path in [*sorted(runs.rglob(files.NUMBERS)), *([beside] if beside.is_file() else [])]:
        try:
            return Theory(path.parent, _numbers(path.parent))
        except (OSError, ValueError) as wrong:
            warnings.append(str(text.clean(str(wrong).replace(f"{path.parent}{os.sep}", ""))))
    return None


def picture(theory: Theory, label: str, title: str, warnings: list[str]) -> list[Picture]:
    """The figure with this label, if it exists."""
    path = theory.folder / files.file_of(label, "png")
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError:
        content = b""
    if not content.startswith(_PNG) or len(content) > _LARGEST:
        warnings.append(f"{path.name}: not a PNG file of at most {_LARGEST} bytes; ignored")
        return []
    return [Picture(path.stem, title, content)]


def table(theory: Theory, label: str, warnings: list[str]) -> list[Table]:
    """The Markdown table with this label, if it exists: rows of equal length, and the text below it as its caption."""
    path = theory.folder / files.file_of(label, "md")
    try:
        lines = [text.clean(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        lines = []
    rows = [_cells(line) for line in lines if line.startswith("| ")]
    if len(rows) < 3 or len({len(row) for row in rows}) > 1:
        warnings.append(f"{path.name}: no table found; ignored")
        return []
    return [Table(" ".join(line for line in lines if line and not line.startswith("|")), rows[0], rows[2:], models=0)]


def check(theory: Theory, sentence: str) -> Checked | None:
    """Check a sentence of the paper; None for one that has no check."""
    return CHECKS[sentence](theory.numbers) if sentence in CHECKS else None


def uniform(theory: Theory) -> Checked:
    """Whether uniform initialisation changes the distribution of the refine gate's values, and of no other gate's."""
    found = {gate: _at(theory.numbers, "uniform_initialisation", "gates", gate) for gate in _ALL}
    away = {gate: finite(_at(part, "distance_from_uniform")) for gate, part in found.items()}
    share = {gate: finite(_at(part, "share_above", _LONG)) for gate, part in found.items()}
    law = finite(_at(theory.numbers, "uniform_initialisation", "share_above_where_uniform", _LONG))
    held = [_fewer(part, _EVEN) if gate != "refine" else _fewer(_SKEWED, part) for gate, part in away.items()]
    what = (
        f"the distribution function of φ(b) differs from the uniform one by at most {_EVEN:g}, with refine by more "
        f"than {_SKEWED:g}"
    )
    shares = f"share of units with D > {_LONG}: {_told({'law': law, **share}, digits=3)}"
    return Checked(what, all_of(held), f"largest distance: {_told(away, digits=3)}; {shares}")


def _numbers(folder: Path) -> dict[str, Any]:
    path = folder / files.NUMBERS
    numbers = read_json(path)
    version = numbers.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise ValueError(f"{path}: made by a different version of gatedrnn theory; run it again")
    return numbers


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def _at(numbers: Any, *path: str | int) -> Any:
    """The value at this path; None if there is none."""
    try:
        for step in path:
            numbers = numbers[step]
    except (KeyError, IndexError, TypeError):
        return None
    return numbers


def _order(numbers: Mapping[str, Any]) -> Checked:
    pairs = [("fast", "sigmoid"), ("sigmoid", "softsign")]
    found = {f"{a} above {b}": _at(numbers, "orders", f"{a}/{b}", "higher_order") for a, b in pairs}
    held = [higher if isinstance(higher, bool) else None for higher in found.values()]
    what = "fast has a higher order of saturation than sigmoid, and sigmoid than softsign"
    words = {True: "yes", False: "no", None: "missing"}
    return Checked(what, all_of(held), ", ".join(f"{pair}: {words[h]}" for pair, h in zip(found, held, strict=True)))


def _descent(numbers: Mapping[str, Any]) -> Checked:
    order = ("fast", "refine", "sigmoid", "softsign")
    steps = _steps(numbers, "gradient_descent", order)
    held = [_fewer(a, b) for a, b in pairwise(steps.values())]
    return Checked(f"iterations to 1−f ≤ 0.001 in the order {', '.join(order)}", all_of(held), _told(steps))


def _optimisers(numbers: Mapping[str, Any]) -> Checked:
    held, seen = [], []
    for optimiser in ("rmsprop", "adam"):
        steps = _steps(numbers, optimiser, _ALL)
        held += [_fewer(steps["fast"], steps[gate]) for gate in GATES]
        seen.append(f"{optimiser}: {_told(steps)}")
    return Checked(f"fewest iterations to 1−f ≤ 0.001 among {', '.join(_ALL)}", all_of(held), "; ".join(seen))


def _plateau(numbers: Mapping[str, Any]) -> Checked:
    step, bound = _PLATEAU
    found = {gate: _at(numbers, "fig:demo", "curves", gate, "gradient_descent_complement", step) for gate in _ALL}
    values = {gate: None if (y := finite(away)) is None else 1 - y for gate, away in found.items()}
    held = [_fewer(value, bound) for value in values.values()]
    return Checked(f"f is below {bound:g} at iteration {step} with every gate", all_of(held), _told(values, digits=3))


def _gradients(numbers: Mapping[str, Any]) -> Checked:
    orders = _at(numbers, "orders")
    pairs = [pair for pair in orders if _at(orders, pair, "higher_order")] if isinstance(orders, Mapping) else []
    held = [_fewer(0.0, finite(_at(numbers, "theorem", "log10_ratios", pair, -1))) for pair in pairs]
    what = "of two gates, the one of higher order has the larger gradient at 1−f = 1e−300"
    return Checked(what, all_of(held) if held else None, f"{held.count(True)} of {len(pairs)} pairs")


def _rates(numbers: Mapping[str, Any]) -> Checked:
    found = {gate: finite(_at(numbers, "fits", gate, "largest_relative_deviation")) for gate in _ALL}
    away = {gate: None if part is None else 100 * part for gate, part in found.items()}
    held = [_fewer(part, _PERCENT) for part in away.values()]
    what = f"1−f follows the law derived from the order of saturation within {_PERCENT:g} %"
    return Checked(what, all_of(held), _told(away, " %", 2))


#: How the paper's sentences are checked.
CHECKS: dict[str, Callable[[Mapping[str, Any]], Checked]] = {
    "fast saturates fastest, softsign slowest": _order,
    "fast is first, then refine, sigmoid, softsign": _descent,
    "a plateau to about 40 iterations": _plateau,
    "the higher the order of saturation, the larger the gradient near f = 1": _gradients,
    "fast is first": _optimisers,
    "the rates follow from the orders of saturation": _rates,
}


def _steps(numbers: Mapping[str, Any], optimiser: str, gates: Sequence[str]) -> dict[str, float | None]:
    """Iterations by gate; infinite if they did not suffice, None if the gate is missing."""
    found = _at(numbers, "first_step_below", optimiser)
    known = found if isinstance(found, Mapping) else {}
    return {
        gate: None if gate not in known else math.inf if known[gate] is None else finite(known[gate]) for gate in gates
    }


def _fewer(first: float | None, second: float | None) -> bool | None:
    """None if a number is missing, or both are infinite."""
    if first is None or second is None or first == second == math.inf:
        return None
    return first < second


def _told(values: Mapping[str, float | None], unit: str = "", digits: int = 4) -> str:
    def shown(value: float | None) -> str:
        if value is None:
            return "missing"
        return "not reached" if math.isinf(value) else text.number(value, digits) + unit

    return ", ".join(f"{name} {shown(value)}" for name, value in values.items())
