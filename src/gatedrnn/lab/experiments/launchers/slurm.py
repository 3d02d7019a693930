"""Runs as jobs of SLURM, by submitit: what its time limit or another user's job interrupts is saved and queued again.

submitit pickles the job that it submits, and reads it back on the node: the exception to the rule that nothing is
unpickled.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gatedrnn.lab.experiments.launchers.base import Job, LauncherError, Message
from gatedrnn.lab.experiments.launchers.remote import Remote, RemoteRun, last_message

_FOLDER = ".submitit"
# An interrupted job is queued again without a limit.
_INTERRUPTIONS = 10**6
_GONE = 30.0  # seconds to wait for the end of a cancelled job


class SlurmRun(RemoteRun):
    """A run that submitit can interrupt and queue again."""

    def checkpoint(self) -> Any:
        """Called at the time limit of the job, or when it is preempted."""
        import submitit

        self.save()
        return submitit.helpers.DelayedSubmission(SlurmRun(self._job, self._sender))


class Slurm(Remote):
    """Jobs of so many minutes in a partition, that of the cluster by default."""

    def __init__(
        self,
        minutes: int = 60,
        partition: str | None = None,
        jobs: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(jobs, threads)
        if minutes < 1:
            raise ValueError(f"minutes must be at least 1, got {minutes}")
        self._minutes, self._partition = minutes, partition
        self._tasks: dict[str, Any] = {}
        self._folder = Path()

    def open(self, out: Path, threads: int) -> None:
        if importlib.util.find_spec("submitit") is None:
            raise LauncherError(
                '--launcher slurm needs the package submitit: pip install ".[slurm]" in a clone of gatedrnn'
            )
        self._check_engine()
        self.mark(out)
        self._folder = out.absolute() / _FOLDER

    def _check_engine(self) -> None:
        if shutil.which("sbatch") is None:
            raise LauncherError("SLURM not found: no command sbatch; run the sweep on a machine with SLURM")

    def executor(self, folder: Path, threads: int) -> Any:
        """What submits jobs, with their files in the folder."""
        import submitit

        executor = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=_INTERRUPTIONS)
        executor.update_parameters(
            name="gatedrnn",
            timeout_min=self._minutes,
            cpus_per_task=threads,
            slurm_partition=self._partition,
            slurm_additional_parameters={"requeue": True},  # also when the machine dies
        )
        return executor

    def _submit(self, job: Job, run: RemoteRun) -> None:
        import submitit

        try:
            made = SlurmRun(job.as_json(), self.sender)
            self._tasks[job.name] = self.executor(self._folder / job.name, job.threads).submit(made)
        except submitit.core.utils.FailedJobError as wrong:  # SLURM says why
            raise LauncherError(f"SLURM refuses {job.name}: {' '.join(str(wrong).split())}") from None

    def _ended(self) -> Iterator[tuple[str, Message]]:
        time.sleep(self.interval)
        for name, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[name]
                yield name, self._last(name, task)

    def _last(self, name: str, task: Any) -> Message:
        wrong = task.exception()
        if wrong is not None:
            line = str(wrong).strip().splitlines()
            return Message(failed=f"{line[-1] if line else type(wrong).__name__} (see {self._folder / name})")
        message = last_message(task.result())
        shutil.rmtree(self._folder / name, ignore_errors=True)  # submitit's files are no longer needed
        return message

    def _cancel(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is None:
            return
        task.cancel()
        deadline = time.monotonic() + _GONE
        while not task.done(force_check=True) and time.monotonic() < deadline:
            time.sleep(self.interval)
