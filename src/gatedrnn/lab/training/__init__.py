"""Training: one loop, its options, and its exact continuation."""

from __future__ import annotations

from gatedrnn.lab.training.options import OPTIMIZERS, SCHEDULES, Training
from gatedrnn.lab.training.run import Run

__all__ = ["OPTIMIZERS", "SCHEDULES", "Run", "Training"]
