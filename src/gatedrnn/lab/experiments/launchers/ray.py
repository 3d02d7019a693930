"""Runs on a Ray cluster: one task for each, which Ray starts again elsewhere when its machine dies."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any

from gatedrnn.lab.experiments.launchers.base import Job, LauncherError, Message
from gatedrnn.lab.experiments.launchers.remote import Remote, RemoteRun, Sender, last_message

_ANSWER = 180.0  # seconds in which a node must say whether it can make the runs; it may have to start Python and torch
_CONNECT = 5.0


class Ray(Remote):
    """The cluster at an address: HOST:PORT, or auto for the one that this machine belongs to."""

    def __init__(self, address: str = "auto", jobs: int | None = None, threads: int | None = None) -> None:
        super().__init__(jobs, threads)
        self._address = address
        self._tasks: dict[str, Any] = {}
        self._open = ExitStack()

    def open(self, out: Path, threads: int) -> None:
        if importlib.util.find_spec("ray") is None:
            raise LauncherError('--launcher ray needs the package ray: pip install ".[ray]" in a clone of gatedrnn')
        self._connect()
        self._check_cores(threads)
        self.mark(out)
        self._check_nodes()

    def close(self) -> None:
        super().close()
        self._open.close()

    def _connect(self) -> None:
        host, _, port = self._address.rpartition(":")
        if self._address != "auto" and not (host and port.isdecimal() and "/" not in host):
            raise LauncherError(f"--address must be auto or HOST:PORT, got {self._address!r}")
        nobody = f"no Ray cluster at {self._address}; start one with ray start --head"
        if self._address != "auto":
            try:  # Ray itself would try for a minute
                socket.create_connection((host, int(port)), _CONNECT).close()
            except (OSError, OverflowError) as wrong:
                raise LauncherError(f"{nobody} ({wrong})") from None
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # of which Ray would warn
        import ray

        # Ray prints messages about dying nodes in any case: keep them out of the results.
        self._open.enter_context(redirect_stdout(sys.stderr))
        self._open.callback(ray.shutdown)
        try:
            ray.init(self._address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, RuntimeError, ValueError) as wrong:  # Ray names other versions of itself and Python
            raise LauncherError(f"{nobody} ({_first_line(wrong)})") from None

    def _nodes(self) -> list[dict[str, Any]]:
        """Those on which runs can be made."""
        import ray

        return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]

    def _check_cores(self, threads: int) -> None:
        most = max((int(node["Resources"]["CPU"]) for node in self._nodes()), default=0)
        if most < threads:
            cores = f"{threads} core" + ("s" if threads > 1 else "")
            raise LauncherError(
                f"a run needs {cores}, but the largest node at {self._address} has {most}; use fewer --threads"
            )

    def _check_nodes(self) -> None:
        """Ask each node, all at the same time."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        asked = {}
        for node in self._nodes():
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(Sender.differs).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
            asked[node["NodeManagerAddress"], node["NodeID"][:8]] = task.remote(self.sender)
        for (address, name), answer in asked.items():
            try:
                why = ray.get(answer, timeout=_ANSWER)
            except ray.exceptions.GetTimeoutError:
                why = f"it did not answer within {_ANSWER:g} s"
            except ray.exceptions.RayError as wrong:  # such as that there is no gatedrnn
                why = _first_line(wrong)
            if why:
                raise LauncherError(f"the node {address} ({name}) cannot run this sweep: {why}")

    def _submit(self, job: Job, run: RemoteRun) -> None:
        import ray

        # A run resumes bit-identically from its last checkpoint, so it can always be restarted.
        task = ray.remote(RemoteRun.__call__).options(num_cpus=job.threads, max_retries=-1, name=job.name)
        self._tasks[job.name] = task.remote(run)

    def _ended(self) -> Iterator[tuple[str, Message]]:
        import ray

        names = {task: name for name, task in self._tasks.items()}
        ray.wait([*names], timeout=self.interval)  # for the first
        for task in ray.wait([*names], num_returns=len(names), timeout=0)[0]:
            try:
                message = last_message(ray.get(task))
            except ray.exceptions.RayError as wrong:
                message = Message(failed=_first_line(wrong))
            del self._tasks[names[task]]
            yield names[task], message

    def _cancel(self, name: str) -> None:
        import ray

        task = self._tasks.pop(name, None)
        if task is not None:
            ray.cancel(task, force=True)
            ray.wait([task], timeout=_CONNECT)


def _first_line(wrong: BaseException) -> str:
    """Ray's errors hold the whole traceback of the node; its last line is the most useful."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    return lines[-1] if lines else type(wrong).__name__
