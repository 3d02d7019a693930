"""The process of one run, seen from the sweep."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.training import Run

_PATIENCE = 10.0  # seconds until a process that was told to end is killed


@dataclass(frozen=True)
class Message:
    """News of a run: how far it is; or, as the last message, its record or why there is none."""

    update: int | None = None
    updates: int | None = None
    value: float | None = None
    rate: float | None = None
    note: str | None = None
    record: dict[str, Any] | None = None
    failed: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it is the last one."""
        return self.record is not None or self.failed is not None


class RunProcess:
    """Trains a run with its number of threads. ``send`` gets its messages, from another thread; the last one always."""

    def __init__(
        self,
        run: Run,
        folder: Path,
        log: Path,
        send: Callable[[Message], None],
        declared: dict[str, Any] | None = None,
    ) -> None:
        self._log, self._send = log, send
        threads = str(run.training.threads)
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gatedrnn.lab.experiments.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
                start_new_session=True,  # Ctrl-C is for the sweep, which then ends its processes
            )
        self._give(json.dumps({"run": run.as_json(), "out": str(folder), "declared": declared}) + "\n")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Until it has ended; an empty log is removed."""
        self._process.wait()
        self._close()

    def stop(self) -> None:
        """End it now. What it did since its last checkpoint is lost, and nothing else."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close()

    def _give(self, job: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(job.encode())
            self._process.stdin.flush()  # and not closed: its end is the signal that the sweep has ended
        except BrokenPipeError:
            pass  # it is dead already, which the reader notices

    def _read(self) -> None:
        assert self._process.stdout is not None
        ended = False
        for line in self._process.stdout:
            try:
                message = Message(**json.loads(line))
            except ValueError:
                break  # killed in the middle of a line
            ended = ended or message.ended
            self._send(message)
        if not ended:
            self._send(Message(failed=_cause(self._process.wait())))

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._reader.join()
        with contextlib.suppress(BrokenPipeError):  # what a process that died at once did not take is still there
            self._process.stdin.close()
        self._process.stdout.close()
        if self._log.exists() and self._log.stat().st_size == 0:
            self._log.unlink()


def _cause(code: int) -> str:
    if code >= 0:
        return f"its process ended with code {code}"
    number = -code
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    memory = ", which the system sends when memory runs out" if number == signal.SIGKILL else ""
    return f"its process was killed by signal {number} ({name}){memory}"
