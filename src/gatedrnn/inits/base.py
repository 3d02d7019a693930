"""The base of initialisers: initial time scales, computed through φ⁻¹ so that they work for every gate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from gatedrnn.gates import Gate
from gatedrnn.gates.stable import has_no_values


class ForgetInit(ABC):
    """Draws the forget biases of one layer. A frozen dataclass; compared by value.

    ``init(gate, hidden_size, generator=None)`` returns float64 biases, one tensor of ``hidden_size`` per
    pre-activation of the gate. The caller casts them last. On the meta device and under FakeTensorMode no value
    is computed or drawn.
    """

    #: Whether an untied cell's input gate (always a sigmoid) starts at b_i = −logit φ(b_f).
    sets_input: ClassVar[bool] = False
    #: The smallest layer for which the initialiser has a meaning.
    smallest_size: ClassVar[int] = 1

    @abstractmethod
    def _biases(self, gate: Gate, hidden_size: int, generator: torch.Generator | None) -> tuple[Tensor, ...]: ...

    def __call__(
        self,
        gate: Gate,
        hidden_size: int,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
    ) -> tuple[Tensor, ...]:
        if hidden_size < self.smallest_size:
            raise ValueError(f"{self!r} needs hidden_size ≥ {self.smallest_size}, got {hidden_size}")
        device = torch.get_default_device() if device is None else torch.device(device)
        empty = tuple(torch.empty(hidden_size, dtype=torch.float64, device=device) for _ in range(gate.preactivations))
        if has_no_values(empty[0]):
            return empty
        with torch.device("cpu" if generator is None else generator.device):
            return tuple(bias.to(device) for bias in self._biases(gate, hidden_size, generator))

    @staticmethod
    def input_bias(gate: Gate, biases: tuple[Tensor, ...]) -> Tensor:
        """b_i = −logit φ(b_f), with which σ(b_i) = 1−φ(b_f)."""
        return gate.log_complement(*biases) - gate.log_value(*biases)

    @staticmethod
    def _inverse(gate: Gate, values: Tensor) -> tuple[Tensor, ...]:
        return _as_tuple(gate.inverse(values))

    @staticmethod
    def _inverse_complement(gate: Gate, complements: Tensor) -> tuple[Tensor, ...]:
        return _as_tuple(gate.inverse_complement(complements))

    @staticmethod
    def _draw(low: float, high: float, size: int, generator: torch.Generator | None) -> Tensor:
        device = generator.device if generator is not None else "cpu"
        uniform = torch.rand(size, dtype=torch.float64, generator=generator, device=device)
        return low + (high - low) * uniform


def _as_tuple(roots: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return roots if isinstance(roots, tuple) else (roots,)
