"""The adding problem: MSE against updates and time, and the growth of time scales."""

from __future__ import annotations

import dataclasses

from gatedrnn.lab.experiments.base import Budget, BudgetName, Experiment, Grid, Variant
from gatedrnn.lab.experiments.models import NRU_DIFFERENCE, variants
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import Training

THRESHOLD = 0.02
MILESTONES = (0.05, 0.02)
_MODELS = ("softsign", "sigmoid", "refine", "fast", "iterated_fast", "chrono", "JANET", "NRU")
_LSTMS = ("softsign", "sigmoid", "refine", "fast", "chrono")
_SETTING = "T=5000, H=128, tied LSTM, RMSprop 1e-3 (α 0.99, eps 1e-8), clip 1, fresh batches of 64, 3 seeds."
_DIFFERENCES = (
    "the paper does not state the number of updates: here, a run ends at an MSE of 0.005 or after 10,000",
    "the second bias of each layer is zero and frozen, so that the parameters match the paper's",
    "evaluated every 50 updates on 1,000 fixed sequences; the paper does not state its evaluation data",
)
_SMALL = Training(updates=4, evaluate_every=2, batch_size=4, evaluation_size=8)

ADDING = Grid(
    "adding",
    {
        "paper": Budget(
            note="T=5000, each run ends at an MSE of 0.005 or after 10,000 updates, 3 seeds",
            task=Adding(5000),
            training=Training(lr=1e-3, updates=10_000, target=0.005),
            models=variants(_MODELS, hidden_size=128, memory_size=64),
            seeds=3,
        ),
        # A run ends when it reaches the threshold. The fast gate needed 1,150 to 2,050 updates; the limit is three
        # times as many.
        "desk": Budget(
            note="T=300 in place of 5000, at most 6,500 updates, each run ends at an MSE of 0.02; softsign, sigmoid "
            "and fast with 5 seeds, the others with 3, NRU with 1",
            task=Adding(300),
            training=Training(lr=1e-3, updates=6_500, target=THRESHOLD),
            models=variants(_MODELS, hidden_size=128, memory_size=64),
            seeds=5,
            fewer={"refine": 3, "iterated_fast": 3, "chrono": 3, "JANET": 3, "NRU": 1},
        ),
        "smoke": Budget(
            note="T=10, H=8, 4 updates: only checks that everything runs",
            task=Adding(10),
            training=_SMALL,
            models=variants(_MODELS, hidden_size=8, memory_size=16),
            seeds=1,
        ),
    },
)

TIME_SCALES = Grid(
    "adding_timescale",
    {
        "paper": Budget(
            note="T=5000, lr 1e-2, 3,000 updates, 3 seeds",
            task=Adding(5000),
            training=Training(lr=1e-2, updates=3_000),
            models=variants(_LSTMS, hidden_size=128),
            seeds=3,
        ),
        "desk": Budget(
            note="T=300 in place of 5000, lr 1e-2, 2,000 updates, 3 seeds",
            task=Adding(300),
            training=Training(lr=1e-2, updates=2_000),
            models=variants(_LSTMS, hidden_size=128),
            seeds=3,
        ),
        "smoke": Budget(
            note="T=10, H=8, lr 1e-2, 4 updates: only checks that everything runs",
            task=Adding(10),
            training=Training(lr=1e-2, updates=4, evaluate_every=2, batch_size=4, evaluation_size=8),
            models=variants(_LSTMS, hidden_size=8),
            seeds=1,
        ),
    },
)

#: The ending of a model's name with both biases of each gate trained, whose sum moves twice as far per update.
TWO_BIASES = "-two-biases"


def _longer(budget: BudgetName, hidden_size: int, updates: int, seeds: int, note: str) -> Budget:
    """Time scales over more updates, with one and with two trained biases: the paper states neither number."""
    whole, names = TIME_SCALES.budgets[budget], ("sigmoid", "fast")
    two = variants(names, hidden_size, trainable_bias_hh=True)
    models = (*variants(names, hidden_size), *(Variant(f"{one.name}{TWO_BIASES}", one.model) for one in two))
    return Budget(note, whole.task, dataclasses.replace(whole.training, updates=updates), models, seeds)


LONGER = Grid(
    "adding_timescale_longer",
    {
        "paper": _longer("paper", 128, 10_000, 3, "T=5000, lr 1e-2, 10,000 updates, 3 seeds"),
        "desk": _longer("desk", 128, 6_000, 1, "T=300 in place of 5000, lr 1e-2, 6,000 updates, 1 seed"),
        "smoke": _longer("smoke", 8, 6, 1, "T=10, H=8, lr 1e-2, 6 updates: only checks that everything runs"),
    },
)

EXPERIMENTS = (
    Experiment(
        label="fig:adding_mse",
        title="Adding: MSE against updates",
        tasks=("adding",),
        setting=_SETTING,
        metric="mse",
        lower_is_better=True,
        threshold=THRESHOLD,
        milestones=MILESTONES,
        view="updates",
        seeds=3,
        expected=(
            "fast is first among the gates",
            "iterated_fast is faster still",
            "NRU needs the fewest updates",
            "softsign fails",
        ),
        differences=(*_DIFFERENCES, NRU_DIFFERENCE),
        grids=(ADDING,),
    ),
    Experiment(
        label="fig:adding_runtime",
        title="Adding: MSE against time",
        tasks=("adding",),
        setting=_SETTING,
        metric="mse",
        lower_is_better=True,
        threshold=THRESHOLD,
        milestones=MILESTONES,
        view="seconds",
        seeds=3,
        expected=(
            "fast is first among the gates",
            "iterated_fast is faster still",
            "fast is comparable to NRU, whose updates take longer",
            "softsign fails",
        ),
        differences=(
            *_DIFFERENCES,
            NRU_DIFFERENCE,
            "the paper's times are from a GPU (Tesla V100S); times are compared only on the same engine and machine",
        ),
        grids=(ADDING,),
    ),
    Experiment(
        label="fig:adding_timescale",
        title="Adding: growth of the time scales −1/log φ(b) of the 128 units",
        tasks=("adding",),
        setting="As fig:adding_mse with a learning rate of 1e-2; mean and standard deviation over the units.",
        metric="mse",
        lower_is_better=True,
        view="time_scales",
        seeds=3,
        expected=(
            "the time scales of fast end orders of magnitude above the others",
            "the time scales of chrono stay at their initial values",
        ),
        differences=(
            "the paper does not state the number of updates: here 3,000",
            *_DIFFERENCES[1:],
            "the text does not list the models of this figure: here, the LSTMs of the main text",
            "the paper draws a tenth of the standard deviation",
        ),
        grids=(TIME_SCALES,),
    ),
)

OWN = (
    Experiment(
        label="own:time_scales",
        title="Adding: growth of the time scales over more updates, with one and with two trained biases",
        tasks=("adding",),
        setting="As fig:adding_timescale, for more updates. In the models with two biases both biases of each gate are "
        "trained, as in torch.nn.LSTM; in the others the second one is zero.",
        metric="mse",
        lower_is_better=True,
        view="time_scales",
        seeds=3,
        differences=("the paper states neither the number of updates nor the number of biases",),
        grids=(LONGER,),
        own=True,
    ),
)
