"""The environment of a run: versions, machine and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

import gatedrnn
from gatedrnn.lab.records import ENVIRONMENT_KIND, SCHEMA
from gatedrnn.lab.tasks import Task
from gatedrnn.lab.training.same_data import TASK_FILE, task_file_digest


def environment(engine: str, task: Task | None = None) -> dict[str, Any]:
    """Versions, machine and commit, and for a custom task a digest of its file. ``engine`` is the line that says what
    runs the loop over time."""
    digest = None if task is None else task_file_digest(task)
    return {
        "schema": SCHEMA,
        "kind": ENVIRONMENT_KIND,
        "gatedrnn": gatedrnn.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": _cores(),
        "system": platform.platform(),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "engine": engine,
        "commit": _commit(),
        **({} if digest is None else {TASK_FILE: digest}),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _commit() -> dict[str, Any] | None:
    """The commit of the source tree and whether it was changed since; None where there is no source tree."""
    root = Path(gatedrnn.__file__).parents[2]
    if not (root / ".git").exists() or not (root / "pyproject.toml").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD").strip()
        return {"head": head, "dirty": bool(_git(root, "status", "--porcelain").strip())}
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]  # it would write into the source tree
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
