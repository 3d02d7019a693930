"""Loss and accuracy where the answer is one of several classes."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def class_loss(output: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy of scores (…, classes) and integers of the shape before."""
    return F.cross_entropy(output.flatten(0, -2), target.flatten())


def class_measures(output: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Of each sample the cross-entropy, and whether the highest score is the right one."""
    losses = F.cross_entropy(output.flatten(0, -2), target.flatten(), reduction="none")
    return {"loss": losses, "accuracy": (output.argmax(-1) == target).flatten()}
