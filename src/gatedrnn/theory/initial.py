"""The time scales that uniform initialisation gives before any training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gatedrnn.gates import Gate, name_of
from gatedrnn.inits import Uniform

UNITS = 100_000
LENGTHS = (10, 100, 1000)


def uniform_time_scales(gates: Sequence[Gate]) -> dict[str, Any]:
    """For each gate: how far the distribution of φ(b) is from uniform, and the share of units with longer time scales.

    Where φ(b) is uniform, D = −1/log φ(b) has P(D > x) = 1 − e^(−1/x), whose density goes as 1/x². The distance is
    the largest between the two distribution functions (Kolmogorov and Smirnov's).
    """
    found: dict[str, Any] = {}
    even = np.arange(1, UNITS + 1) / UNITS
    for gate in gates:
        biases = Uniform()(gate, UNITS, torch.Generator().manual_seed(0))
        values = np.sort(gate.value(*biases).numpy())
        away = np.maximum(np.abs(values - even), np.abs(values - even + 1 / UNITS))
        scales = -1 / gate.log_value(*biases).numpy()
        found[name_of(gate)] = {
            "distance_from_uniform": float(away.max()),
            "share_above": {str(x): float(np.mean(scales > x)) for x in LENGTHS},
        }
    law = {str(x): float(-np.expm1(-1 / x)) for x in LENGTHS}
    return {"units": UNITS, "seed": 0, "share_above_where_uniform": law, "gates": found}
