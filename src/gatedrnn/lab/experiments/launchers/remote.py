"""What launchers have in common whose runs are made on other machines, which see the same folder.

There, :class:`RemoteRun` trains the run in a process of its own, as on this machine, and its news are lines of JSON in
a file beside its folder.
"""

from __future__ import annotations

import json
import os
import queue
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import gatedrnn
from gatedrnn.files import append
from gatedrnn.lab.experiments.launchers.base import Job, Launcher, LauncherError, Message
from gatedrnn.lab.experiments.launchers.process import RunProcess

# Seconds that a run waits for its folder. A file server may keep the lock of a machine that died for its lease, which
# is 90 s with NFS.
_PATIENCE = 120.0


@dataclass(frozen=True)
class Sender:
    """What a machine must have in common with the one that sends it runs."""

    version: str
    #: A file in the folder of the sweep, and its content.
    mark: str
    text: str

    def differs(self) -> str | None:
        """Why this machine cannot make the runs; None if it can."""
        if gatedrnn.__version__ != self.version:
            return f"it has gatedrnn {gatedrnn.__version__}, this machine has {self.version}"
        try:
            seen = Path(self.mark).read_text()
        except OSError:
            seen = ""
        if seen != self.text:
            return f"it cannot access {Path(self.mark).parent}: choose an --out on storage that all nodes share"
        return None


def news_file(job: Job) -> Path:
    """The file in which a remote run reports its progress."""
    return job.folder.with_name(f"{job.folder.name}.news")


class RemoteRun:
    """Trains a run where it is called, and returns its last message as JSON."""

    def __init__(self, job: str, sender: Sender) -> None:
        self._job, self._sender = job, sender
        self._process: RunProcess | None = None

    def __call__(self) -> str:
        if why := self._sender.differs():
            return _line(Message(failed=f"{os.uname().nodename} cannot run it: {why}"))
        job = Job.from_json(self._job)
        messages: queue.Queue[Message] = queue.Queue()
        append(news_file(job), _line(Message(started=True)))
        self._process = RunProcess(job, messages.put, _PATIENCE)
        while not (message := messages.get()).ended:
            append(news_file(job), _line(message))
        self._process.wait()
        return _line(message)

    def save(self) -> None:
        """End it with a checkpoint."""
        if self._process is not None:
            self._process.save()


class Remote(Launcher):
    """Gives its runs to an engine that has a queue of its own: at most ``jobs`` at a time, all for None."""

    #: Seconds that :meth:`_ended` may wait.
    interval = 0.5

    def __init__(self, jobs: int | None, threads: int | None) -> None:
        for name, value in (("jobs", jobs), ("threads", threads)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self._jobs, self._threads = jobs, threads or 1
        self._started: dict[str, Job] = {}
        self._read: dict[str, int] = {}
        self._pending: deque[tuple[str, Message]] = deque()
        self._mark: Path | None = None
        self._made: Path | None = None

    @property
    def threads(self) -> int:
        return self._threads

    @property
    def under_way(self) -> Collection[str]:
        return self._started.keys()

    def has_room(self, job: Job) -> bool:
        return self._jobs is None or len(self._started) < self._jobs

    def start(self, job: Job) -> None:
        news_file(job).unlink(missing_ok=True)
        self._started[job.name], self._read[job.name] = job, 0
        try:
            self._submit(job, RemoteRun(job.as_json(), self.sender))
        except LauncherError:
            del self._started[job.name]
            raise

    def news(self) -> tuple[str, Message]:
        while not self._pending:
            ended = dict(self._ended())
            for name in self._started:
                self._pending.extend((name, message) for message in self._lines(name))
            self._pending.extend(ended.items())
        name, message = self._pending.popleft()
        if message.ended:
            self._forget(name)
        return name, message

    def stop(self, name: str) -> None:
        self._cancel(name)
        self._forget(name)

    def close(self) -> None:
        super().close()
        if self._mark is not None:
            self._mark.unlink(missing_ok=True)
        if self._made is not None:
            with suppress(OSError):  # it is not empty
                self._made.rmdir()

    def mark(self, out: Path) -> None:
        """Put a file into the folder that the machines are asked for."""
        if not out.exists():
            out.mkdir(parents=True)
            self._made = out
        self._mark = out.absolute() / f".sweep-{uuid.uuid4().hex}"
        self._mark.write_text(self._mark.name)

    @property
    def sender(self) -> Sender:
        assert self._mark is not None
        return Sender(gatedrnn.__version__, str(self._mark), self._mark.name)

    @abstractmethod
    def _submit(self, job: Job, run: RemoteRun) -> None:
        """Give it to the engine."""

    @abstractmethod
    def _ended(self) -> Iterator[tuple[str, Message]]:
        """The last messages of the runs that ended since the last call, each returned once; waits for the interval."""

    @abstractmethod
    def _cancel(self, name: str) -> None:
        """End it, and return when it has."""

    def _forget(self, name: str) -> None:
        news_file(self._started.pop(name)).unlink(missing_ok=True)

    def _lines(self, name: str) -> Iterator[Message]:
        """What was added to its file, whole lines only."""
        try:
            with open(news_file(self._started[name]), "rb") as file:
                file.seek(self._read[name])
                added = file.read()
        except FileNotFoundError:
            return
        for line in added.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return
            self._read[name] += len(line)
            with suppress(ValueError):  # a line that a dying machine left unfinished, joined with the next one
                yield Message(**json.loads(line))


def last_message(text: str) -> Message:
    """What a RemoteRun returned."""
    return Message(**json.loads(text))


def _line(message: Message) -> str:
    return json.dumps(asdict(message)) + "\n"
