"""What a custom task measures: one value of each measure for each sample, under a name of its own."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gatedrnn.lab.records import read_run
from gatedrnn.lab.tasks import TASKS, class_measures
from gatedrnn.lab.training import Run, train
from gatedrnn.lab.training.names import RESERVED

from .runs import SMALL, changed
from .test_language import language_run
from .toy import IMAGES, ToyImages


@dataclass(frozen=True)
class _Odd(ToyImages):
    """With the loss of each step beside the accuracy of each sample."""

    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        found = class_measures(output, target)
        return {**found, "loss": found["loss"].expand(6, -1)}


@dataclass(frozen=True)
class _NoLoss(ToyImages):
    def measure(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"accuracy": torch.ones(target.numel())}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (_Odd(), r"must measure the loss and 'accuracy' of the same samples, got 120 values \(6, 20\) of the loss and "
         r"20 values of 'accuracy'"),
        (_NoLoss(), "the measures of the task toy_images must include 'loss', got accuracy"),
    ],
)  # fmt: skip
def test_measures_that_have_no_common_mean_are_refused(task: ToyImages, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train(dataclasses.replace(IMAGES, task=task), tmp_path)


@pytest.mark.parametrize("name", RESERVED)
def test_a_metric_is_not_named_as_another_field(name: str) -> None:
    @dataclass(frozen=True)
    class Named(ToyImages):
        metric = name

    with pytest.raises(
        ValueError, match=f"the task toy_images cannot call a measure '{name}', because records and results of evaluate"
    ):
        dataclasses.replace(IMAGES, task=Named()).check()


@pytest.mark.parametrize("name", TASKS)
def test_built_in_metrics_have_names_of_their_own(name: str) -> None:
    assert TASKS[name].metric not in RESERVED


def test_every_other_field_of_the_metrics_is_reserved(tmp_path: Path) -> None:
    """And those of the record of a test split."""
    runs: dict[str, tuple[Run, set[str]]] = {
        "features": (changed(updates=1, monitor=True), {"loss", "mse"}),
        "epochs": (language_run(tmp_path / "text", epochs=1), {"loss", "perplexity", "bins"}),
    }
    for name, (run, own) in runs.items():
        record = train(run, tmp_path / name)
        fields = {field for line in read_run(tmp_path / name).metrics for field in line} | {*record.get("test", ())}
        assert own <= fields and fields - own <= set(RESERVED)
    assert "stability" in read_run(tmp_path / "features").metrics[-1] and SMALL.task.metric == "mse"
