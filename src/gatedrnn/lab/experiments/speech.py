"""Raw speech, 16,000 steps long."""

from __future__ import annotations

import dataclasses

from gatedrnn.lab.experiments.base import Budget, Experiment, Grid, PaperValue, Variant
from gatedrnn.lab.experiments.models import variants
from gatedrnn.lab.tasks import Speech
from gatedrnn.lab.training import Training

_TRAINING = Training(
    optimizer="adamw", lr=1e-3, clip=1.0, batch_size=50, epochs=200, schedule="plateau", decay=0.2, patience=20
)


def _models(hidden_size: int, recompute: bool = False) -> tuple[Variant, ...]:
    """Linear(1, H), an LSTM layer, the mean over time, Linear(H, 10)."""
    return variants(
        ("sigmoid", "refine", "UR", "fast"), hidden_size, encoder_size=hidden_size, read="mean", recompute=recompute
    )


SPEECH = Grid(
    "speech",
    {
        "paper": Budget(
            note="H=256, up to 200 epochs, the best on validation of 8 combinations of learning rate and clipping",
            task=Speech(),
            training=_TRAINING,
            models=_models(256, recompute=True),
            seeds=1,
            search={"lr": (1e-3, 5e-4, 1e-4, 5e-5), "clip": (1.0, 0.1)},
        ),
        "desk": Budget(
            note="a subset of 2,000 clips of version 0.01 in place of the 34,975 of the benchmark; "
            "H=64 in place of 256, 55 epochs (1,540 updates), lr 1e-3, clip 1",
            task=Speech(subset=True),
            training=dataclasses.replace(_TRAINING, epochs=55),
            models=_models(64),
            seeds=1,
            data="subset of 2,000 clips",
        ),
        "smoke": Budget(
            note="H=4, 1 epoch of 7 clips per word of the subset: only checks that everything runs",
            task=Speech(subset=True, clips=7),
            training=dataclasses.replace(_TRAINING, epochs=1, batch_size=25),
            models=_models(4),
            seeds=1,
            search={"lr": (1e-3,), "clip": (1.0, 0.1)},
        ),
    },
)

EXPERIMENTS = (
    Experiment(
        label="tab:results_sc",
        title="Raw Speech Commands: test accuracy",
        tasks=("speech",),
        setting="One LSTM layer, H=256, T=16000, ten words; AdamW, learning rate and clipping searched.",
        metric="accuracy",
        seeds=1,
        columns={"speech": "% test accuracy"},
        values={
            "sigmoid": {"speech": PaperValue(21.5, diverged=True)},
            "refine": {"speech": PaperValue(83.9, diverged=True)},
            "UR": {"speech": PaperValue(77.6, diverged=True)},
            "fast": {"speech": PaperValue(92.3)},
        },
        expected=("fast is stable on a length of 16,000, where the others diverge",),
        differences=(
            "inputs have unit variance; the public code scales twice, to a standard deviation of 0.2",
            "the paper does not report the selected learning rate and clipping",
            "the split is stratified by word, 70/15/15, as in the public code, but drawn independently",
            "silent clips are left out, if there are any",
            "the second bias of each layer is zero and frozen, so that the parameters match the paper's",
        ),
        grids=(SPEECH,),
    ),
)
