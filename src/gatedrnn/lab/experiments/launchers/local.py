"""Runs in processes of this machine, several at a time: the launcher without dependencies."""

from __future__ import annotations

import os
import queue
from collections.abc import Collection
from pathlib import Path

from gatedrnn.lab.experiments.launchers.base import Job, Launcher, Message
from gatedrnn.lab.experiments.launchers.process import RunProcess


def cores_here() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local(Launcher):
    """``jobs`` runs at a time share the cores. Raises ValueError for more jobs, or threads of one, than there are."""

    def __init__(self, jobs: int | None = None, threads: int | None = None, cores: int | None = None) -> None:
        self._cores = cores or cores_here()
        there = f"{self._cores}, the number of cores here"
        if threads is not None and not 1 <= threads <= self._cores:
            raise ValueError(f"threads must be at least 1 and at most {there}, got {threads}")
        if jobs is None:
            jobs = self._cores // (threads or 1)
        if not 1 <= jobs <= self._cores:
            raise ValueError(f"jobs must be at least 1 and at most {there}, got {jobs}")
        self._jobs, self._threads = jobs, threads or self._cores // jobs
        self._running: dict[str, tuple[Job, RunProcess]] = {}
        self._messages: queue.Queue[tuple[str, Message]] = queue.Queue()

    @property
    def threads(self) -> int:
        return self._threads

    def open(self, out: Path, threads: int) -> None:
        pass

    @property
    def under_way(self) -> Collection[str]:
        return self._running.keys()

    def has_room(self, job: Job) -> bool:
        # A run that was begun with more threads keeps them, and then has the cores for itself.
        used = sum(running.threads for running, _ in self._running.values())
        return not self._running or (len(self._running) < self._jobs and used + job.threads <= self._cores)

    def start(self, job: Job) -> None:
        self._messages.put((job.name, Message(started=True)))
        process = RunProcess(job, lambda message: self._messages.put((job.name, message)))
        self._running[job.name] = job, process

    def news(self) -> tuple[str, Message]:
        name, message = self._messages.get()
        if message.ended:
            self._running.pop(name)[1].wait()
        return name, message

    def stop(self, name: str) -> None:
        self._running.pop(name)[1].stop()
