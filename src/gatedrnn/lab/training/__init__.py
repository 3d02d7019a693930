"""Training: one loop, its options, and its exact continuation."""

from __future__ import annotations

from gatedrnn.lab.training.loop import train
from gatedrnn.lab.training.options import OPTIMIZERS, SCHEDULES, Training
from gatedrnn.lab.training.progress import Progress, Status
from gatedrnn.lab.training.refused import InUseError, RefusedError
from gatedrnn.lab.training.run import Run, UnknownTaskError
from gatedrnn.lab.training.trained import Trained, open_trained

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "InUseError",
    "Progress",
    "RefusedError",
    "Run",
    "Status",
    "Trained",
    "Training",
    "UnknownTaskError",
    "open_trained",
    "train",
]
