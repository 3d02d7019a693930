"""Values as JSON, with None for numbers that are not finite."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from gatedrnn.files import write


def write_json(path: Path, value: Any) -> None:
    """The value as one indented JSON document."""
    write(path, (json.dumps(json_safe(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def line(value: dict[str, Any]) -> str:
    """The value as one line of JSON."""
    return json.dumps(json_safe(value), ensure_ascii=False, allow_nan=False) + "\n"


def json_safe(value: Any) -> Any:
    """The value as JSON can hold it: None for a number that is not finite."""
    if isinstance(value, dict):
        return {key: json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
