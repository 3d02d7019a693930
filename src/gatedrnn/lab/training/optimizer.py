"""The optimiser, and its state as plain tensors by name."""

from __future__ import annotations

from collections.abc import Mapping
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


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = lr


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
