"""The toy problem solved by the optimisers people use, torch's own (fig:demo and fig:demo_other)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer, RMSprop

from gatedrnn.theory.toy import ToyProblem

Array = NDArray[np.float64]

#: The paper's three optimisers; what is not named here is torch's default.
OPTIMISERS: dict[str, Callable[[list[Tensor]], Optimizer]] = {
    "gradient_descent": lambda parameters: SGD(parameters, lr=1.0),
    "rmsprop": lambda parameters: RMSprop(parameters, lr=0.01),
    "adam": lambda parameters: Adam(parameters, lr=0.01),
}


def descend(problem: ToyProblem, optimiser: Callable[[list[Tensor]], Optimizer], steps: int) -> Array:
    """log(1−f) before the first step and after each of ``steps``, starting at z = 0.

    The gradient is the gate's analytic one: autograd through a rounded f would end in zeros.
    """
    z = problem.start().requires_grad_()
    stepper = optimiser([z])
    path = torch.empty(steps + 1, *z.shape, dtype=torch.float64)
    with torch.no_grad():
        path[0] = z
        for step in range(1, steps + 1):
            z.grad = problem.gradient(z)
            stepper.step()
            path[step] = z
        return problem.log_complement(path).numpy()


def first_step_below(log_complement: Array, threshold: float) -> int | None:
    """The first step with 1−f ≤ threshold, or None if the trajectory never gets there."""
    reached = np.flatnonzero(log_complement <= np.log(threshold))
    return int(reached[0]) if reached.size else None
