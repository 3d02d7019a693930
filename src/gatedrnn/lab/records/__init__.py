"""Records: what a run leaves behind, as JSON on disk. They are read and written without torch."""

from __future__ import annotations

from gatedrnn.lab.records.checkpoints import (
    CHECKPOINTS,
    Checkpoint,
    last_checkpoint,
    read_checkpoint,
    remove_leftovers,
    write_checkpoint,
)
from gatedrnn.lab.records.files import append, finite, line, write, write_json
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
    "CHECKPOINTS",
    "ENVIRONMENT_FILE",
    "ENVIRONMENT_KIND",
    "METRICS_FILE",
    "OPTIONS_FILE",
    "RECORD_FILE",
    "RECORD_KIND",
    "RUN_KIND",
    "SCHEMA",
    "Checkpoint",
    "RunRecord",
    "append",
    "check_schema",
    "find_runs",
    "finite",
    "last_checkpoint",
    "line",
    "read_checkpoint",
    "read_json",
    "read_run",
    "remove_leftovers",
    "write",
    "write_checkpoint",
    "write_json",
]
