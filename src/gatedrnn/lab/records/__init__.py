"""Records: what a run leaves behind, as JSON on disk. They are read and written without torch."""

from __future__ import annotations

from gatedrnn.lab.records.checkpoints import (
    CHECKPOINTS,
    Checkpoint,
    ForeignError,
    move_aside,
    read_checkpoint,
    remove_leftovers,
    whole_checkpoints,
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
    SchemaError,
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
    "ForeignError",
    "RunRecord",
    "SchemaError",
    "append",
    "check_schema",
    "find_runs",
    "finite",
    "line",
    "move_aside",
    "read_checkpoint",
    "read_json",
    "read_run",
    "remove_leftovers",
    "whole_checkpoints",
    "write",
    "write_checkpoint",
    "write_json",
]
