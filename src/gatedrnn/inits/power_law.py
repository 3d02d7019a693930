"""Multi-timescale initialisation (Mahto et al., 2020): time scales that follow a power law, as in language."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.inits.base import ForgetInit


@dataclass(frozen=True)
class PowerLaw(ForgetInit):
    """φ(b) = exp(−1/T) with T from the inverse gamma distribution, P(T > t) = gammainc(shape, scale/t).

    Unit j of H gets the T whose survival level is j/(H+1): nothing is drawn, and T falls from unit to unit.
    An untied cell's input gate gets the mirror image.

    Args:
        shape: Exponent of the power law; positive. Default: 0.56
        scale: Unit of the time scales, in steps; positive. Default: 1
    """

    shape: float = 0.56
    scale: float = 1.0
    sets_input = True

    def __post_init__(self) -> None:
        for name, number in (("shape", self.shape), ("scale", self.scale)):
            if not (math.isfinite(number) and number > 0):
                raise ValueError(f"PowerLaw needs a positive {name}, got {name}={number}")

    def time_scales(self, hidden_size: int) -> Tensor:
        """The T of every unit, in float64."""
        level = torch.arange(1, hidden_size + 1, dtype=torch.float64) / (hidden_size + 1)
        shape = torch.full_like(level, self.shape)
        # gammainc(shape, x) = level, solved for log x by bisection: x spans hundreds of decades for small shapes.
        low, high = torch.full_like(level, -700.0), torch.full_like(level, 700.0)
        if not bool((torch.special.gammainc(shape, torch.exp(low)) < level).all()):
            raise self._out_of_reach(hidden_size)
        for _ in range(80):
            middle = 0.5 * (low + high)
            below = torch.special.gammainc(shape, torch.exp(middle)) < level
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return self.scale / torch.exp(0.5 * (low + high))

    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        rate = 1.0 / self.time_scales(hidden_size)
        if not bool(((rate > 0) & (torch.exp(-rate) > 0)).all()):
            raise self._out_of_reach(hidden_size)
        # From f where it is the smaller, from 1−f where that is: the other rounds to 1.
        short = rate > math.log(2.0)
        values = self._inverse(gate, torch.where(short, torch.exp(-rate), 0.5))
        complements = self._inverse_complement(gate, torch.where(short, 0.5, -torch.expm1(-rate)))
        return tuple(torch.where(short, b, c) for b, c in zip(values, complements, strict=True))

    def _out_of_reach(self, hidden_size: int) -> ValueError:
        return ValueError(
            f"{self!r} with hidden_size {hidden_size} gives time scales that no float64 gate value has; "
            "use a larger shape"
        )
