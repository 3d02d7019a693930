"""Every table and figure of the paper as a declared experiment, additional experiments, and the sweep that runs
them."""

from __future__ import annotations

from gatedrnn.lab.experiments import adding, copy, images, language, speech, theory, tones
from gatedrnn.lab.experiments.base import (
    BUDGETS,
    Budget,
    BudgetName,
    DeclaredRun,
    Experiment,
    Grid,
    NotRunnableError,
    PaperValue,
    TextClaim,
    Variant,
    View,
    runs_of,
)
from gatedrnn.lab.experiments.claims import CLAIMS
from gatedrnn.lab.experiments.models import MODEL_NAMES

#: By the paper's labels, in the order of the paper.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.label: experiment
    for module in (theory, adding, copy, images, language, speech)
    for experiment in module.EXPERIMENTS
}
#: Experiments that are not in the paper.
OWN: dict[str, Experiment] = {
    experiment.label: experiment for module in (adding, copy, language, tones) for experiment in module.OWN
}

__all__ = [
    "BUDGETS",
    "CLAIMS",
    "EXPERIMENTS",
    "MODEL_NAMES",
    "OWN",
    "Budget",
    "BudgetName",
    "DeclaredRun",
    "Experiment",
    "Grid",
    "NotRunnableError",
    "PaperValue",
    "TextClaim",
    "Variant",
    "View",
    "runs_of",
]
