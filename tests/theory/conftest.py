"""The flows of the library's gates, followed once for all tests of the theory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from torch import Tensor

from gatedrnn.gates import GATES, SigmoidOf
from gatedrnn.theory import Flow, ToyProblem, flow

TAU = np.concatenate([np.arange(301.0), 10.0 ** (np.arange(1, 191) / 20 + 2.5)])


@pytest.fixture(scope="session")
def flow_of() -> Callable[[str], Flow]:
    """The flow of a gate of the library, Δt = 10, λ = 1, from z = 0, at τ = 0 … 1e12."""
    found: dict[str, Flow] = {}

    def get(name: str) -> Flow:
        if name not in found:
            found[name] = flow(ToyProblem(GATES[name]()), TAU)
        return found[name]

    return get


@dataclass(frozen=True)
class Cubic(SigmoidOf):
    """A gate of a user's own, with nothing but α and α′."""

    def alpha(self, z: Tensor) -> Tensor:
        return z + z**3 / 3

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + z**2


@pytest.fixture
def cubic() -> Cubic:
    return Cubic()
