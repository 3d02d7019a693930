"""Language modelling on Penn Treebank. Declared; the task is built later."""

from __future__ import annotations

from gatedrnn.lab.experiments.base import BudgetName, Experiment, PaperValue, Plan, Variant
from gatedrnn.lab.models import Model
from gatedrnn.lab.training import Training

# Test tokens by how often they occur in the training data.
_BINS = ("over 10,000", "1,000 to 10,000", "100 to 1,000", "under 100", "all")


def _models(hidden_size: int) -> tuple[Variant, ...]:
    """400 → H → H → 400 with both biases. Refine is tied, which gives it the same number of parameters."""
    return tuple(
        Variant(
            gate,
            Model(
                hidden_size=hidden_size,
                num_layers=3,
                tied=gate == "refine",
                forget_gate=gate,
                trainable_bias_hh=True,
            ),
        )
        for gate in ("sigmoid", "refine", "fast")
    )


def _row(*perplexities: float, time: float) -> dict[str, PaperValue]:
    row = {name: PaperValue(value) for name, value in zip(_BINS, perplexities, strict=True)}
    return {**row, "time": PaperValue(time)}


_SGD = Training(optimizer="sgd", lr=30.0, clip=0.25, weight_decay=1.2e-6, batch_size=20)
_PLANS: dict[BudgetName, Plan] = {
    "paper": Plan("24,221,600 parameters, up to 1,000 epochs", "ptb", _SGD, _models(1150), (141,), epochs=1000),
    "desk": Plan("H=200 in place of 1150, 3 epochs", "ptb", _SGD, _models(200), (141,), epochs=3),
    "smoke": Plan("H=8, 1 epoch of a few words", "ptb", _SGD, _models(8), (141,), epochs=1),
}

EXPERIMENTS = (
    Experiment(
        label="tab:language_results",
        title="Penn Treebank: test perplexity by frequency of the word, time an epoch",
        tasks=("ptb",),
        setting="Three-layer AWD-LSTM, 400→1150→1150→400, SGD with lr 30, then averaged; clip 0.25, batches of 20.",
        metric="perplexity",
        lower_is_better=True,
        seeds=1,
        columns={**dict.fromkeys(_BINS, "test perplexity"), "time": "seconds an epoch"},
        values={
            "sigmoid": _row(7.25, 27.72, 170.25, 2026.87, 60.22, time=130),
            "refine": _row(7.61, 28.01, 166.46, 1936.02, 60.50, time=185),
            "fast": _row(7.43, 27.70, 166.68, 1975.51, 60.09, time=138),
        },
        expected=(
            "refine and fast are better than sigmoid on rare words",
            "fast is best on all words together",
            "NRU diverges and is not in the table",
        ),
        differences=(
            "known faults of the public code are not repeated: recurrent matrices that never train, memory that grows "
            "after the switch to ASGD, perplexity divided by one word too many",
            "the paper's runs broke at epoch 324 and were taken up again",
        ),
        plans={"ptb": _PLANS},
        pending="the task ptb is not built yet",
    ),
)
