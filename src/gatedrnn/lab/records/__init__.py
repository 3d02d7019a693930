"""Records: what a run leaves behind, as JSON on disk. They are read and written without torch."""

from __future__ import annotations

from gatedrnn.lab.records.run import (
    ENVIRONMENT_FILE,
    ENVIRONMENT_KIND,
    METRICS_FILE,
    OPTIONS_FILE,
    RECORD_FILE,
    RECORD_KIND,
    RUN_KIND,
    SCHEMA,
    RunRecord,
    check_schema,
    find_runs,
    read_json,
    read_run,
)

__all__ = [
    "ENVIRONMENT_FILE",
    "ENVIRONMENT_KIND",
    "METRICS_FILE",
    "OPTIONS_FILE",
    "RECORD_FILE",
    "RECORD_KIND",
    "RUN_KIND",
    "SCHEMA",
    "RunRecord",
    "check_schema",
    "find_runs",
    "read_json",
    "read_run",
]
