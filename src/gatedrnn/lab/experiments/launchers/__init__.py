"""Where the runs of a sweep are trained: on this machine, on a Ray cluster, or by SLURM."""

from __future__ import annotations

from gatedrnn.lab.experiments.launchers.base import Job, Launcher, LauncherError, Message
from gatedrnn.lab.experiments.launchers.local import Local, cores_here

__all__ = ["Job", "Launcher", "LauncherError", "Local", "Message", "cores_here"]
