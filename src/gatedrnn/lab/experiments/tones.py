"""An additional experiment: up to which length of raw sound does a gate learn what was heard at the start?"""

from __future__ import annotations

from gatedrnn.lab.experiments.base import Budget, Experiment, Grid
from gatedrnn.lab.experiments.models import variants
from gatedrnn.lab.tasks import Tones
from gatedrnn.lab.training import Training

LENGTHS = (500, 2_000, 8_000, 16_000)
_MODELS = ("softsign", "sigmoid", "refine", "fast")
_TRAINING = Training(
    optimizer="adam", lr=1e-3, clip=1.0, batch_size=32, updates=1_500, evaluate_every=100, evaluation_size=500
)
_SMALL = Training(optimizer="adam", lr=1e-3, clip=1.0, batch_size=4, updates=4, evaluate_every=2, evaluation_size=8)


def _grid(length: int) -> Grid:
    def full(seeds: int, note: str) -> Budget:
        models = variants(_MODELS, hidden_size=64, read="mean")
        return Budget(f"T={length}, H=64, 1,500 updates, {note}", Tones(length), _TRAINING, models, seeds)

    return Grid(
        f"tones_{length}",
        {
            "paper": full(3, "3 seeds"),
            "desk": full(1, "1 seed in place of 3"),
            "smoke": Budget(
                note=f"T={length // 100}, H=8, 4 updates: only checks that everything runs",
                task=Tones(length // 100),
                training=_SMALL,
                models=variants(_MODELS, hidden_size=8, read="mean"),
                seeds=1,
            ),
        },
    )


OWN = (
    Experiment(
        label="own:tones",
        title="Which tone was heard at the start? Accuracy against the length of the sound",
        tasks=("tones",),
        setting="One of ten tones for 100 steps, noise for the rest of T steps. Tied LSTM, H=64, the mean over time is "
        "read; Adam 1e-3, clip 1, fresh batches of 32, 1,500 updates.",
        metric="accuracy",
        threshold=0.5,
        view="length",
        seeds=3,
        grids=tuple(_grid(length) for length in LENGTHS),
        own=True,
    ),
)
