"""Dropout of the entries of a recurrent matrix."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gatedrnn.layers.checks import check_probability


def drop_entries(weight: Tensor, p: float) -> Tensor:
    """As F.dropout, in a third of its time on a CPU: there a matrix of 400 units costs it as much as ten steps of time.

    An entry is dropped if its 32 random bits are below p·2³², which is p to ten digits.
    """
    check_probability("weight_dropout", p)  # it may have been assigned
    if p == 1 or not _plain(weight):
        return F.dropout(weight, p)
    pairs = torch.empty((weight.numel() + 1) // 2, dtype=torch.int64, device=weight.device).random_(-(2**63), None)
    bits = pairs.view(torch.int32)[: weight.numel()].view(weight.shape)
    kept = bits >= min(round(p * 2**32) - 2**31, 2**31 - 1)  # 2³¹ is no int32
    return weight * kept.to(weight.dtype).mul_(1.0 / (1.0 - p))


def _plain(weight: Tensor) -> bool:
    """Whether it runs on a CPU, neither compiled nor transformed, where random numbers follow other rules."""
    return (
        weight.device.type == "cpu"
        and type(weight) in (Tensor, nn.Parameter)
        and not torch.compiler.is_compiling()
        and torch._C._functorch.peek_interpreter_stack() is None
    )
