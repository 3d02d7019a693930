from __future__ import annotations

import dataclasses
import json

import pytest

from gatedrnn.lab.models import Model
from gatedrnn.lab.tasks import Adding, Copy
from gatedrnn.lab.training import Run, Training

RUNS = [
    Run(),
    Run(Copy(100), Model(cell="nru"), Training(optimizer="adam", seed=3)),
    Run(Adding(50), Model(cell="gru"), Training(schedule="steps", decay_at=(10, 20), clip=None)),
]


@pytest.mark.parametrize("run", RUNS)
def test_json_there_and_back(run: Run) -> None:
    run.check()
    assert Run.from_json(json.loads(json.dumps(run.as_json()))) == run


def test_what_options_json_says() -> None:
    options = Run(Adding(500)).as_json()
    assert options["schema"] == 1 and options["kind"] == "gatedrnn run"
    assert options["task"] == {"name": "adding", "length": 500}
    assert options["model"]["forget_gate"] == "fast"
    assert options["training"]["optimizer"] == "rmsprop"
    assert options["key"] == Run(Adding(500)).key()
    measured = {"metric": "mse", "lower_is_better": True, "metric_unit": None, "metric_scale": "log"}
    assert {name: options[name] for name in measured} == measured


def test_the_key_changes_with_what_determines_the_result_and_with_nothing_else() -> None:
    run = Run()
    same = {"threads": 2, "checkpoint_seconds": 1.0, "tensorboard": True, "budget_seconds": 60.0}
    assert Run(training=Training(**same)).key() == run.key()  # type: ignore[arg-type]
    others = [
        Run(Copy(5000)),
        Run(Adding(4999)),
        Run(model=Model(forget_gate="sigmoid")),
        Run(model=Model(engine="reference")),
        *(
            Run(training=dataclasses.replace(run.training, **{name: value}))
            for name, value in {"seed": 1, "lr": 2e-3, "updates": 10, "target": 0.02, "batch_size": 32}.items()
        ),
    ]
    assert len({run.key(), *(other.key() for other in others)}) == 1 + len(others)


def test_an_older_record_takes_defaults_for_what_it_does_not_know() -> None:
    options = Run().as_json()
    del options["training"]["autocast"]
    assert Run.from_json(options) == Run()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "written in version 99 of the format; this gatedrnn reads version 1"),
        ({"kind": "else"}, "expected a 'gatedrnn run', got 'else'"),
        ({"task": {"name": "chess"}}, "unknown task 'chess'; known tasks: adding, copy"),
        ({"model": {"colour": "red"}}, "unknown option 'colour' of Model; known options: cell"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_with_the_reason(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Run.from_json({**Run().as_json(), **change})


def test_chrono_needs_a_dependency_longer_than_two_steps() -> None:
    with pytest.raises(ValueError, match="^forget_init chrono needs a task whose t_max is above 2, got 2$"):
        Run(Adding(2), Model(forget_init="chrono")).check()
