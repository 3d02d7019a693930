"""The optimiser, and its state as plain tensors by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gatedrnn.lab.training.options import OPTIMIZERS, Training

_PREFIX = "optimizer."


def make_optimizer(training: Training, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    options: dict[str, Any] = {
        name: getattr(training, name)
        for name in ("alpha", "eps", "momentum", "weight_decay")
        if getattr(training, name) is not None
    }
    if training.beta1 is not None:
        options["betas"] = (training.beta1, training.beta2)
    kind: Any = OPTIMIZERS[training.optimizer]
    optimizer: torch.optim.Optimizer = kind(parameters, lr=training.lr, foreach=True, **options)
    return optimizer


def make_averaging_optimizer(training: Training, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """SGD that averages the weights from its first step on."""
    weight_decay = training.weight_decay or 0.0
    return torch.optim.ASGD(parameters, lr=training.lr, lambd=0.0, t0=0.0, weight_decay=weight_decay, foreach=True)


@contextmanager
def averaged(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Inside the ``with`` the parameters are their averages, if the optimiser has some. Only pointers change places."""
    _swap(optimizer)
    try:
        yield
    finally:
        _swap(optimizer)


@torch.no_grad()
def _swap(optimizer: torch.optim.Optimizer) -> None:
    for parameter, state in optimizer.state.items():
        if "ax" in state:
            parameter.data, state["ax"] = state["ax"], parameter.data


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr
    for state in optimizer.state.values():
        if "eta" in state:  # ASGD would use the learning rate of the previous update
            state["eta"].fill_(lr)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state under names like optimizer.3.square_avg; 3 is the parameter's place."""
    state = optimizer.state_dict()["state"]
    return {
        f"{_PREFIX}{index}.{name}": value.detach().cpu().contiguous()
        for index, entries in state.items()
        for name, value in entries.items()
        if value is not None
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what :func:`optimizer_tensors` took out."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(_PREFIX):
            index, name = key.removeprefix(_PREFIX).split(".")
            state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
