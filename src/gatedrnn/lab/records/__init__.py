"""Records: the files of a run, as JSON on disk. They are read and written without torch."""

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
from gatedrnn.lab.records.run import (
    ENVIRONMENT_FILE,
    ENVIRONMENT_KIND,
    METRICS_FILE,
    OPTIONS_FILE,
    RECORD_FILE,
    RECORD_KIND,
    RUN_KIND,
    SCHEMA,
    UPDATE_TIMES_FILE,
    UPDATE_TIMES_KIND,
    RunRecord,
    SchemaError,
    check_schema,
    find_runs,
    read_json,
    read_run,
)
from gatedrnn.lab.records.values import json_safe, line, write_json

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
    "UPDATE_TIMES_FILE",
    "UPDATE_TIMES_KIND",
    "Checkpoint",
    "ForeignError",
    "RunRecord",
    "SchemaError",
    "check_schema",
    "find_runs",
    "json_safe",
    "line",
    "move_aside",
    "read_checkpoint",
    "read_json",
    "read_run",
    "remove_leftovers",
    "whole_checkpoints",
    "write_checkpoint",
    "write_json",
]
