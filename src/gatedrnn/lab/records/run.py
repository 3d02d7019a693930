"""Reading the files of a run. Nothing here needs torch."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
RUN_KIND = "gatedrnn run"
RECORD_KIND = "gatedrnn record"
ENVIRONMENT_KIND = "gatedrnn environment"
UPDATE_TIMES_KIND = "gatedrnn update times"

OPTIONS_FILE = "options.json"
ENVIRONMENT_FILE = "environment.json"
METRICS_FILE = "metrics.jsonl"
RECORD_FILE = "record.json"
#: In the folder of the runs: the time of one update of each model on an idle machine.
UPDATE_TIMES_FILE = "update_times.json"

# Levels of lists and objects inside each other. A record has six; recursion into many more would fail.
_DEEPEST = 50


class SchemaError(ValueError):
    """A file of another kind, or of a version of the format that is not known here."""


@dataclass(frozen=True)
class RunRecord:
    """One run folder. ``record`` is None as long as the run has not ended."""

    folder: Path
    options: dict[str, Any]
    environment: dict[str, Any] | None
    metrics: list[dict[str, Any]]
    record: dict[str, Any] | None
    #: What was found damaged and left out.
    warnings: list[str] = field(default_factory=list)


def read_run(folder: str | os.PathLike[str]) -> RunRecord:
    """What the run folder holds. What is damaged beside the options is left out, with a warning.

    Raises FileNotFoundError where there is no run, and ValueError with the reason where its options cannot be read.
    """
    folder = Path(folder)
    options = read_json(folder / OPTIONS_FILE)
    check_schema(options, RUN_KIND, folder / OPTIONS_FILE)
    warnings: list[str] = []
    environment = _read_optional(folder / ENVIRONMENT_FILE, ENVIRONMENT_KIND, warnings)
    record = _read_optional(folder / RECORD_FILE, RECORD_KIND, warnings)
    metrics = _read_lines(folder / METRICS_FILE, warnings)
    if record is not None and not (folder / METRICS_FILE).exists():
        warnings.append(f"{folder / METRICS_FILE} is missing; the run is shown without curves")
    return RunRecord(folder, options, environment, metrics, record, warnings)


def find_runs(root: str | os.PathLike[str]) -> list[Path]:
    """The run folders at and below ``root``, sorted."""
    return sorted(path.parent for path in Path(root).rglob(OPTIONS_FILE))


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object; ValueError with the reason where it is none."""
    try:
        value = _parsed(_bytes(path))
    except ValueError as wrong:
        raise ValueError(f"{path} is damaged: {wrong}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} is damaged: not a JSON object")
    return value


def check_schema(value: dict[str, Any], kind: str, path: Path | None = None) -> None:
    """Raise SchemaError where the value is of another kind, or of a version that is not known here."""
    where = f"{path}: " if path else ""
    found, version = value.get("kind"), value.get("schema")
    if found != kind:
        raise SchemaError(f"{where}expected a {kind!r}, got {reprlib.repr(found)}")
    if version != SCHEMA or isinstance(version, bool):
        written = reprlib.repr(version)
        raise SchemaError(f"{where}written in version {written} of the format; this gatedrnn reads version {SCHEMA}")


def _read_optional(path: Path, kind: str, warnings: list[str]) -> dict[str, Any] | None:
    try:
        value = read_json(path)
        check_schema(value, kind, path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        warnings.append(f"{wrong}; skipped")
        return None
    return value


def _read_lines(path: Path, warnings: list[str]) -> list[dict[str, Any]]:
    """The lines up to the first incomplete one."""
    lines: list[dict[str, Any]] = []
    try:
        written = _bytes(path).splitlines(keepends=True)
    except FileNotFoundError:
        return lines
    except (OSError, ValueError) as wrong:
        warnings.append(f"{path}: {wrong}; skipped")
        return lines
    for number, text in enumerate(written, start=1):
        try:
            if not text.endswith(b"\n"):
                raise ValueError("no newline at its end")
            lines.append(_parsed(text))
        except ValueError as wrong:
            warnings.append(f"{path}: line {number} is incomplete; skipped with all lines after it: {wrong}")
            break
    return lines


def _bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # reading a pipe would never end
        raise ValueError("it is not a file")
    return path.read_bytes()


def _parsed(text: bytes) -> Any:
    """The JSON value; ValueError where it is none, or has more levels than a record can have."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("its lists or objects are nested too deeply") from None
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return value
    raise ValueError("its lists or objects are nested too deeply")


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
