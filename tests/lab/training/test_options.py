from __future__ import annotations

import numpy as np
import pytest
import torch

from gatedrnn.lab.training import OPTIMIZERS, SCHEDULES, Run, Training
from gatedrnn.lab.training.optimizer import make_optimizer


def test_the_defaults_are_the_papers() -> None:
    training = Training()
    assert (training.optimizer, training.lr, training.alpha, training.eps) == ("rmsprop", 1e-3, 0.99, 1e-8)
    assert (training.clip, training.batch_size, training.updates) == (1.0, 64, 20000)
    assert (training.evaluate_every, Run().training.evaluation_size) == (50, 1000)
    assert training.beta1 is None
    assert Training(optimizer="adam").beta2 == 0.999


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name != "steps"])
def test_what_can_be(optimizer: str, schedule: str) -> None:
    Training(optimizer=optimizer, schedule=schedule).check()


def test_lists_and_numpys_numbers_are_as_good() -> None:
    Training(schedule="steps", decay_at=[5], updates=np.int64(10), lr=np.float32(1e-3)).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "lbfgs"}, "optimizer must be one of rmsprop, adam, adamw, sgd, got 'lbfgs'"),
        ({"lr": -1.0}, "lr must be between 1e-30 and 1e\\+20, got -1.0"),
        ({"lr": float("nan")}, "lr must be between 1e-30 and 1e\\+20, got nan"),
        ({"lr": 1e300}, "lr must be between 1e-30 and 1e\\+20, got 1e\\+300"),
        ({"lr": 1e-300}, "lr must be between 1e-30 and 1e\\+20, got 1e-300"),
        ({"eps": 1e300}, "eps must be between 1e-30 and 1e\\+10, got 1e\\+300"),
        ({"weight_decay": 1e300}, "weight_decay must be 0 or between 1e-30 and 1e\\+10, got 1e\\+300"),
        ({"weight_decay": float("nan")}, "weight_decay must be 0 or between 1e-30 and 1e\\+10, got nan"),
        ({"optimizer": "adam", "momentum": 0.9}, "momentum is for the optimizer rmsprop, sgd, not for adam, got 0.9"),
        ({"optimizer": "sgd", "eps": 1e-6}, "eps is for the optimizer rmsprop, adam, adamw, not for sgd"),
        ({"beta1": 0.5}, "beta1 is for the optimizer adam, adamw, not for rmsprop, got 0.5"),
        ({"alpha": 1.0}, "alpha must be at least 0 and below 1, got 1.0"),
        ({"weight_decay": -0.1}, "weight_decay must be 0 or between 1e-30 and 1e\\+10, got -0.1"),
        ({"clip": 0.0}, "clip must be between 1e-30 and 1e\\+10, got 0.0"),
        ({"batch_size": 0}, "batch_size must be between 1 and 1000000000, got 0"),
        ({"batch_size": 10**13}, "batch_size must be between 1 and 1000000000, got 10000000000000"),
        ({"updates": 0}, "updates must be between 1 and 1000000000, got 0"),
        ({"updates": 10**18}, "updates must be between 1 and 1000000000, got 1000000000000000000"),
        ({"threads": 0}, "threads must be between 1 and 1024, got 0"),
        ({"threads": 100000}, "threads must be between 1 and 1024, got 100000"),
        ({"evaluation_size": 0}, "evaluation_size must be between 1 and 1000000000, got 0"),
        ({"schedule": "exponential"}, "schedule must be one of constant, steps, linear, cosine, plateau"),
        ({"patience": 3}, "patience is for the schedule plateau, not for constant, got 3"),
        ({"schedule": "steps"}, "decay_at must be a list of updates or epochs, each at least 1, got \\[\\]"),
        (
            {"schedule": "steps", "decay_at": (5, 0)},
            "decay_at must be a list of updates or epochs, each at least 1, got \\[5, 0\\]",
        ),
        ({"lr": "1e-3"}, "lr must be a number, got '1e-3'"),
        ({"updates": 10.5}, "updates must be an integer or None, got 10.5"),
        ({"decay_at": (1, "2")}, "decay_at must be a list, each an integer, or None, got \\(1, '2'\\)"),
        ({"tensorboard": "yes"}, "tensorboard must be true or false, got 'yes'"),
        ({"target": float("inf")}, "target must be a finite number, got inf"),
        ({"budget_seconds": 0.0}, "budget_seconds must be a positive number, got 0.0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"device": "abacus"}, "device must be one that torch can use here \\(cpu.*\\), got 'abacus'"),
        ({"device": ""}, "device must be one that torch can use here \\(cpu.*\\), got ''"),
        ({"device": "meta"}, "device must be one that torch can use here \\(cpu.*\\), got 'meta'"),
        ({"device": "privateuseone"}, "device must be one that torch can use here \\(cpu.*\\), got 'privateuseone'"),
        ({"device": "xla"}, "device must be one that torch can use here \\(cpu.*\\), got 'xla'"),
        ({"autocast": "float16"}, "autocast must be one of bfloat16, got 'float16'"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds must be 0 or a positive number, got -1.0"),
    ],
)
def test_what_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        Training(**options).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("lr", "weight_decay"), [(1e-30, 1e-30), (1e20, 1e10)])
def test_what_is_allowed_at_most_can_be_computed(optimizer: str, lr: float, weight_decay: float) -> None:
    """No more than infinite weights come of it, which the loop sees; torch raises no error."""
    options = {"beta1": 1 - 2**-53, "beta2": 1 - 2**-53} if optimizer in ("adam", "adamw") else {}
    training = Training(optimizer=optimizer, lr=lr, weight_decay=weight_decay, **options)  # type: ignore[arg-type]
    training.check()
    weight = torch.nn.Parameter(torch.ones(3))
    step = make_optimizer(training, [weight])
    for _ in range(3):
        weight.grad = torch.tensor([0.0, 1.0, 1e10])
        step.step()
    assert weight[0] != 1.0 or lr < 1


def test_tensorboard_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="^tensorboard needs the package tensorboard: pip install tensorboard$"):
        Training(tensorboard=True).check()
