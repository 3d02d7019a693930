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

from gatedrnn.lab.experiments.launchers.base import Job, Message

_PATIENCE = 10.0  # seconds until a process that was asked to end is killed


class RunProcess:
    """Trains a run with its number of threads. ``send`` gets its messages, from another thread; the last one always."""

    def __init__(self, job: Job, send: Callable[[Message], None], patience: float = 0.0) -> None:
        """``patience`` is how many seconds it waits for its folder while another process is still training there."""
        self._log, self._send = job.log, send
        threads = str(job.threads)
        with open(self._log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gatedrnn.lab.experiments.launchers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
                start_new_session=True,  # Ctrl-C is for the sweep, which then ends its processes
            )
        self._give(f"{job.as_json()}\n{patience}\n")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> None:
        """Until it has ended; an empty log is removed."""
        self._process.wait()
        self._close()

    def stop(self) -> None:
        """End it now. What it did since its last checkpoint is lost, and nothing else."""
        self._end(signal.SIGTERM)

    def save(self) -> None:
        """End it after the update under way, with a checkpoint."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
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
        with contextlib.suppress(BrokenPipeError):  # unread input of a process that died at once
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
