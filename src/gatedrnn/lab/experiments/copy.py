"""The copy problem: accuracy and loss against updates and time, and the NRU with a tenth of the clipping threshold."""

from __future__ import annotations

import dataclasses

from gatedrnn.lab.experiments.base import Budget, BudgetName, Experiment, Grid, Variant, View
from gatedrnn.lab.experiments.models import NRU_DIFFERENCE, variants
from gatedrnn.lab.tasks import Copy
from gatedrnn.lab.training import Training

THRESHOLD = 0.99
MILESTONES = (0.9, 0.99)
_MODELS = ("softsign", "sigmoid", "refine", "fast", "iterated_fast", "chrono", "JANET", "NRU")
_SETTING = "T=500, H=128, tied LSTM, RMSprop 1e-3 (α 0.99, eps 1e-8), clip 1, fresh batches of 64, 3 seeds."

COPY = Grid(
    "copy",
    {
        "paper": Budget(
            note="T=500, each run ends at an accuracy of 0.999 or after 60,000 updates, 3 seeds",
            task=Copy(500),
            training=Training(lr=1e-3, updates=60_000, target=0.999),
            models=variants(_MODELS, hidden_size=128, memory_size=64),
            seeds=3,
        ),
        # A run ends when it reaches the threshold.
        "desk": Budget(
            note="T=100 in place of 500, at most 20,000 updates, each run ends at an accuracy of 0.99; softsign, "
            "sigmoid and fast with 5 seeds, the others with 3, NRU with 1",
            task=Copy(100),
            training=Training(lr=1e-3, updates=20_000, target=THRESHOLD),
            models=variants(_MODELS, hidden_size=128, memory_size=64),
            seeds=5,
            fewer={"refine": 3, "iterated_fast": 3, "chrono": 3, "JANET": 3, "NRU": 1},
        ),
        "smoke": Budget(
            note="T=10, H=8, 4 updates: only checks that everything runs",
            task=Copy(10),
            training=Training(updates=4, evaluate_every=2, batch_size=4, evaluation_size=8),
            models=variants(_MODELS, hidden_size=8, memory_size=16),
            seeds=1,
        ),
    },
)


#: The NRU with a clipping threshold of 0.1 in place of 1.
CLIPPED = "NRU-clip-0.1"


def _clipped(budget: BudgetName, seeds: int) -> Budget:
    """The NRU's runs of the grid above, clipped at a tenth."""
    whole = COPY.budgets[budget]
    (model,) = (variant.model for variant in whole.models if variant.name == "NRU")
    training = dataclasses.replace(whole.training, clip=0.1)
    return Budget(f"{whole.note}; clip 0.1", whole.task, training, (Variant(CLIPPED, model),), seeds)


NRU_CLIPPED = Grid(
    "copy_nru_clipped", {"paper": _clipped("paper", 3), "desk": _clipped("desk", 1), "smoke": _clipped("smoke", 1)}
)


def _experiment(label: str, title: str, view: View) -> Experiment:
    return Experiment(
        label=label,
        title=title,
        tasks=("copy",),
        setting=_SETTING,
        metric="accuracy",
        lower_is_better=False,
        threshold=THRESHOLD,
        milestones=MILESTONES,
        view=view,
        seeds=3,
        expected=("fast is first among the gates", "iterated_fast is faster still", "NRU diverges"),
        differences=(
            "the paper does not state the number of updates: here, a run ends at an accuracy of 0.999 or after 60,000",
            "one marker after the blank steps, as in the paper's text; other sources repeat it or place it elsewhere",
            "the second bias of each layer is zero and frozen, so that the parameters match the paper's",
            "evaluated every 50 updates on 1,000 fixed sequences; the paper does not state its evaluation data",
            NRU_DIFFERENCE,
        ),
        grids=(COPY,),
    )


EXPERIMENTS = (
    _experiment("fig:copy_accuracy", "Copy: accuracy against updates", "updates"),
    _experiment("fig:copy_acc_runtime", "Copy: accuracy against time", "seconds"),
    _experiment("fig:copy_loss", "Copy: loss against time", "loss"),
)

OWN = (
    Experiment(
        label="own:nru_copy",
        title="Copy: NRU with clipping thresholds of 1 and 0.1",
        tasks=("copy",),
        setting=_SETTING.replace("tied LSTM", "NRU").replace("clip 1", "clip 1 and 0.1"),
        metric="accuracy",
        threshold=THRESHOLD,
        milestones=MILESTONES,
        view="updates",
        seeds=3,
        differences=(NRU_DIFFERENCE,),
        grids=(COPY, NRU_CLIPPED),
        shown=("NRU", CLIPPED),
        own=True,
    ),
)
