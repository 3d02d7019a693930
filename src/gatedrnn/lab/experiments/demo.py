"""The training of ``gatedrnn demo``: the effect of the gate in a minute or two."""

from __future__ import annotations

import dataclasses

from gatedrnn.lab.experiments.base import Budget, Variant
from gatedrnn.lab.experiments.models import variants
from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Training

#: The MSE of always answering 1, the mean of the sum.
GUESSING = 1 / 6
# Far more than either needs on two cores; a slow machine stops here and reports the number of updates.
_MOST_SECONDS = 100.0
_MODELS = ("sigmoid", "fast")


def _on_reference(variant: Variant) -> Variant:
    assert isinstance(variant.model, Model)
    return dataclasses.replace(variant, model=dataclasses.replace(variant.model, engine="reference"))


#: For the CPU engine: 1,500 updates in about 40 seconds with one thread each.
NATIVE = Budget(
    note="T=200, H=64, 1,500 updates",
    task=Adding(200),
    training=Training(updates=1_500, evaluation_size=500, budget_seconds=_MOST_SECONDS),
    models=variants(_MODELS, hidden_size=64),
    seeds=1,
)
#: Without it: a shorter sequence, for which both gates need fewer updates. About 85 seconds.
REFERENCE = Budget(
    note="T=60, H=64, 700 updates",
    task=Adding(60),
    training=Training(updates=700, evaluation_size=500, budget_seconds=_MOST_SECONDS),
    models=tuple(_on_reference(variant) for variant in variants(_MODELS, hidden_size=64)),
    seeds=1,
)
