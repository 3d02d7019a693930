"""Reading what a run leaves behind. Nothing here needs torch."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
RUN_KIND = "gatedrnn run"
RECORD_KIND = "gatedrnn record"
ENVIRONMENT_KIND = "gatedrnn environment"

OPTIONS_FILE = "options.json"
ENVIRONMENT_FILE = "environment.json"
METRICS_FILE = "metrics.jsonl"
RECORD_FILE = "record.json"


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
    """What the run folder holds. A torn last line of the metrics is left out, with a warning.

    Raises FileNotFoundError where there is no run, and ValueError with the reason for what cannot be read.
    """
    folder = Path(folder)
    options = read_json(folder / OPTIONS_FILE)
    check_schema(options, RUN_KIND, folder / OPTIONS_FILE)
    environment, record = (
        _read_optional(folder / name, kind)
        for name, kind in ((ENVIRONMENT_FILE, ENVIRONMENT_KIND), (RECORD_FILE, RECORD_KIND))
    )
    metrics, warnings = _read_lines(folder / METRICS_FILE)
    return RunRecord(folder, options, environment, metrics, record, warnings)


def find_runs(root: str | os.PathLike[str]) -> list[Path]:
    """The run folders at and below ``root``, sorted."""
    return sorted(path.parent for path in Path(root).rglob(OPTIONS_FILE))


def read_json(path: Path) -> dict[str, Any]:
    """One JSON object; ValueError with the reason where it is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} is damaged: {wrong}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} is damaged: it holds no JSON object")
    return value


def check_schema(value: dict[str, Any], kind: str, path: Path | None = None) -> None:
    """Raise ValueError where the value is of another kind, or of a version that is not known here."""
    where = f"{path}: " if path else ""
    if value.get("kind") != kind:
        raise ValueError(f"{where}expected a {kind!r}, got {value.get('kind')!r}")
    if value.get("schema") != SCHEMA:
        raise ValueError(
            f"{where}written in version {value.get('schema')!r} of the format; this gatedrnn reads version {SCHEMA}"
        )


def _read_optional(path: Path, kind: str) -> dict[str, Any] | None:
    if not path.exists():
        return None
    value = read_json(path)
    check_schema(value, kind, path)
    return value


def _read_lines(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines up to the first one that is torn."""
    if not path.exists():
        return [], []
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        try:
            if not text.endswith(b"\n"):
                raise ValueError("it does not end")
            lines.append(json.loads(text))
        except ValueError as wrong:
            return lines, [f"{path}: line {number} is torn and was left out with all after it: {wrong}"]
    return lines, []
