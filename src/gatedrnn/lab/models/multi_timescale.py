"""The three-layer recipe of multi-timescale language models (Mahto et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.inits import ForgetInit, PowerLaw
from gatedrnn.layers import RecurrentLayer

MULTI_TIMESCALE = "multi_timescale"


@dataclass(frozen=True)
class HalfAndHalf(ForgetInit):
    """φ(b) = exp(−1/T) with one T for the first half of the units, and another for the second."""

    first: float = 3.0
    second: float = 4.0
    sets_input = True

    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        scales = torch.full((hidden_size,), self.second, dtype=torch.float64)
        scales[: hidden_size // 2] = self.first
        return self._inverse(gate, torch.exp(-1.0 / scales))


class _MakesLayers(Protocol):
    def __call__(self, place: int, *, forget_init: ForgetInit | None) -> RecurrentLayer: ...


def multi_timescale_layers(layer: _MakesLayers) -> list[RecurrentLayer]:
    """Short time scales in the first layer, those of a power law in the second, both fixed; the third learns."""
    made = [layer(0, forget_init=HalfAndHalf()), layer(1, forget_init=PowerLaw()), layer(2, forget_init=None)]
    for fixed in made[:2]:
        for name, parameter in fixed.named_parameters():
            if name.startswith("bias"):
                parameter.requires_grad_(False)
    return made
