"""Trains a run as the tests of several processes want it: python together.py NAME OUT, maybe under torchrun."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import torch

from gatedrnn.lab.models import Model, Network
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import RefusedError, Run, Training, loop, train
from gatedrnn.lab.training.beginning import new_network
from tests.lab.training.toy import IMAGES, TEXT


def small(**options: Any) -> Run:
    """Eight rows: two processes have four each, three have three, three and two."""
    given = {"batch_size": 8, "evaluate_every": 50, "evaluation_size": 21, "checkpoint_seconds": 0.0, "threads": 1}
    return Run(Adding(12), Model(hidden_size=8), Training(**{**given, **options}))


RUNS = {
    # One step of plain descent: the weights move by the gradient.
    "gradient": small(optimizer="sgd", lr=1.0, clip=None, updates=1, evaluate_every=1),
    "long": small(updates=200, evaluate_every=1, checkpoint_seconds=60.0),
    "killed": small(updates=400),
    "text": dataclasses.replace(TEXT, training=dataclasses.replace(TEXT.training, updates=20)),
    "images": dataclasses.replace(IMAGES, training=dataclasses.replace(IMAGES.training, epochs=2)),
}


def double_network(run: Run) -> Network:
    """A run refuses another default dtype than float32: its weights are drawn there, and the batches are float64."""
    torch.set_default_dtype(torch.float32)
    network = new_network(run).double()
    torch.set_default_dtype(torch.float64)
    return network


def main(name: str, out: str, *options: str) -> None:
    run = RUNS[name]
    if "float64" in options:
        loop.new_network = double_network
    if "resized" in options:
        run = dataclasses.replace(run, training=dataclasses.replace(run.training, processes=int(options[-1])))
    try:
        train(run, out)
    except RefusedError as refused:
        print(f"refused: {refused}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
