"""The names of the files, and strict JSON."""

from __future__ import annotations

import json
import math
from typing import Any

#: The file that holds every number drawn.
NUMBERS = "theory.json"
_DIGITS = 12  # kept of a number: more would differ between machines


def file_of(label: str, kind: str) -> str:
    """The file of a figure or table by the paper's label."""
    return f"{label.replace(':', '_')}.{kind}"


def strict_json(value: Any) -> str:
    """Strict JSON (what is not finite becomes null), keys sorted, a list of numbers on one line."""
    return _dump(clean(value), "") + "\n"


def clean(value: Any) -> Any:
    """The value as JSON can hold it: numbers to 12 digits, None for what is not finite."""
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def _dump(value: Any, indent: str) -> str:
    if not isinstance(value, dict) or not value:
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    inner = indent + " "
    items = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {_dump(value[key], inner)}" for key in sorted(value))
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"
