"""One run in a process of its own: ``python -m gatedrnn.lab.experiments.launchers.worker``.

The job comes as a line of JSON on the standard input and the patience as another; then it stays open: when it ends, so
has the sweep, and the run stops at once. SIGINT ends the run with a checkpoint. How far it is goes as lines of JSON to
what was the standard output; whatever else is printed goes to the log, the standard error.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from typing import Any, TextIO

from gatedrnn.lab.experiments.launchers.base import Job
from gatedrnn.lab.training import InUseError, Progress, Status, train
from gatedrnn.lab.training.memory import keep_freed_memory

_EVERY = 0.5  # seconds between two messages about updates
_LOOK_AGAIN = 0.5  # seconds until a folder that is in use is looked at again


def main() -> int:
    """Train, and report progress and outcome. Returns 0, or 1 if there is no record."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    text, patience = sys.stdin.buffer.readline(), float(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_sweep, daemon=True).start()
    keep_freed_memory()
    try:
        job = Job.from_json(text)
        record = _trained(job, _reporter(channel, job.run.task.metric), patience)
    except KeyboardInterrupt:
        return 1
    except (ValueError, OSError) as wrong:  # errors that users can fix
        _send(channel, failed=_one_line(str(wrong)))
        return 1
    except Exception as fault:
        traceback.print_exc()
        _send(channel, failed=_one_line(f"{type(fault).__name__}: {fault}"))
        return 1
    names = ("outcome", "updates", "diverged_at", "seconds", "metric", "final")
    _send(channel, record={name: record[name] for name in names})
    return 0


def _trained(job: Job, progress: Progress, patience: float) -> dict[str, Any]:
    """The record. Another process that trains in the folder may be one of this run's own that is just dying."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return train(job.run, job.folder, progress, job.declared)
        except InUseError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_LOOK_AGAIN)


def _reporter(channel: TextIO, metric: str) -> Progress:
    sent = -_EVERY

    def report(status: Status) -> None:
        nonlocal sent
        now = time.monotonic()
        if not (status.evaluated or status.note) and now - sent < _EVERY:
            return
        sent = now
        value = status.metrics[metric] if status.metrics else None
        _send(
            channel,
            update=status.update,
            updates=status.updates,
            value=value,
            rate=status.updates_a_second,
            note=status.note,
        )

    return report


def _send(channel: TextIO, **message: object) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _end_with_the_sweep() -> None:
    """The descriptor itself: a reader object would hold a lock that the end of the interpreter waits for."""
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
