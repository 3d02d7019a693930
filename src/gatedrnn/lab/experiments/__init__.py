"""Every table and figure of the paper as a declared experiment, and the sweep that makes its runs."""

from __future__ import annotations

from gatedrnn.lab.experiments import adding, copy, images, language, speech, theory
from gatedrnn.lab.experiments.base import (
    BUDGETS,
    Budget,
    BudgetName,
    DeclaredRun,
    Experiment,
    Grid,
    NotRunnableError,
    PaperValue,
    Plan,
    Variant,
    View,
    runs_of,
)
from gatedrnn.lab.experiments.models import MODEL_NAMES

#: By the paper's labels, in the order of the paper, each followed by what is our own beside it.
EXPERIMENTS: dict[str, Experiment] = {
    experiment.label: experiment
    for module in (theory, adding, copy, images, language, speech)
    for experiment in module.EXPERIMENTS
}

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "MODEL_NAMES",
    "Budget",
    "BudgetName",
    "DeclaredRun",
    "Experiment",
    "Grid",
    "NotRunnableError",
    "PaperValue",
    "Plan",
    "Variant",
    "View",
    "runs_of",
]
