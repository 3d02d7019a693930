"""The launcher interface: start a run in its folder, report its progress, stop it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatedrnn.lab.training import Run


class LauncherError(ValueError):
    """Runs cannot be made there; nothing was started."""


@dataclass(frozen=True)
class Job:
    """One run, where it is made, and which run of which experiment it is. The name is unique in its sweep."""

    name: str
    run: Run
    folder: Path
    declared: dict[str, Any] | None = None

    @property
    def threads(self) -> int:
        """The number of cores it uses."""
        return self.run.training.threads or 1

    @property
    def log(self) -> Path:
        """What its process prints: warnings, and the traceback of a fault."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def as_json(self) -> str:
        """In one line."""
        job = {"name": self.name, "run": self.run.as_json(), "out": str(self.folder), "declared": self.declared}
        return json.dumps(job)

    @staticmethod
    def from_json(text: str | bytes) -> Job:
        job = json.loads(text)
        return Job(job["name"], Run.from_json(job["run"]), Path(job["out"]), job["declared"])


@dataclass(frozen=True)
class Message:
    """News of a run: that it was started; how far it is; a note for the user; or, as the last message, its record or
    why there is none."""

    started: bool = False
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


class Launcher(ABC):
    """Starts runs. Between :meth:`open` and :meth:`close` they are started, and their messages received, one at a
    time."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """The cores that a run gets unless it was begun with another number."""

    @abstractmethod
    def open(self, out: Path, threads: int) -> None:
        """Get ready for runs below the folder ``out``, the largest with so many threads.

        Raises LauncherError with the reason if they cannot be made; then nothing was started.
        """

    @property
    @abstractmethod
    def under_way(self) -> Collection[str]:
        """The names of the runs that were started and whose last message was not returned yet."""

    @abstractmethod
    def has_room(self, job: Job) -> bool:
        """Whether it may be started now. If nothing else runs, any job may."""

    @abstractmethod
    def start(self, job: Job) -> None:
        """Train it as soon as its cores are free."""

    @abstractmethod
    def news(self) -> tuple[str, Message]:
        """The next message of any active run, with its name; waits for one. The last message of a run always comes."""

    @abstractmethod
    def stop(self, name: str) -> None:
        """End the run now. What it did since its last checkpoint is lost, and nothing else."""

    def close(self) -> None:
        """Stop all active runs and clean up."""
        for name in [*self.under_way]:
            self.stop(name)
