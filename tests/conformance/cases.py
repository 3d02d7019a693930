"""Every engine × cell × gate, taken from the registries: a new entry is tested as soon as it is registered."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from gatedrnn.cells import CELLS
from gatedrnn.engines import ENGINES
from gatedrnn.gates import GATES, Gate, SigmoidOf
from gatedrnn.layers import LAYERS, STEPS
from tests.cells.equations import EQUATIONS, PHI, sigma


class _Quintic(SigmoidOf):
    """A custom gate: steeper and steeper."""

    def alpha(self, z: Tensor) -> Tensor:
        return z + z**5 / 10

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return 1 + z**4 / 2


class _Bent(SigmoidOf):
    """Another one, in two pieces."""

    def alpha(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() < 1, z, torch.sign(z) * (1 + torch.log(z.abs().clamp(min=1))))

    def alpha_derivative(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() < 1, torch.ones_like(z), 1 / z.abs().clamp(min=1))


#: Custom gates, and φ written a second time.
OWN_GATES: dict[str, tuple[Gate, Callable[..., Tensor]]] = {
    "own_quintic": (_Quintic(), lambda z: sigma(z * (1 + z * z * z * z / 10))),
    "own_bent": (
        _Bent(),
        lambda z: sigma(z.clamp(-1, 1) + torch.sign(z) * torch.log(torch.maximum(z.abs(), torch.ones_like(z)))),
    ),
}


@dataclass(frozen=True)
class Case:
    """A cell with its options and a gate, None where the cell takes none, on an engine."""

    cell: str
    gate: str | None
    options: tuple[tuple[str, Any], ...] = ()
    engine: str = "reference"

    def __str__(self) -> str:
        words = [self.cell, *(name for name, value in self.options if value is True), *filter(None, [self.gate])]
        return "-".join([*words, *([self.engine] if self.engine != "reference" else [])])

    @property
    def takes_gate(self) -> bool:
        return CELLS[self.cell].takes_gate

    @property
    def aux(self) -> bool:
        return self.gate in GATES and GATES[self.gate].preactivations > 1

    @property
    def states(self) -> tuple[str, ...]:
        return CELLS[self.cell].states

    def _keywords(self, keywords: dict[str, Any]) -> dict[str, Any]:
        own = OWN_GATES.get(self.gate or "")
        gate = {} if self.gate is None else {"forget_gate": self.gate if own is None else own[0]}
        return {**gate, **dict(self.options), **keywords}

    def layer(self, *sizes: int, **keywords: Any) -> Any:
        keywords = {"engine": self.engine, "dtype": torch.float64, **keywords}
        return LAYERS[self.cell](*sizes, **self._keywords(keywords))  # type: ignore[arg-type]

    def step(self, *sizes: int, engine: str | None = None, **keywords: Any) -> Any:
        made = STEPS[self.cell](*sizes, **self._keywords({"dtype": torch.float64, **keywords}))  # type: ignore[arg-type]
        made.engine = engine or self.engine
        return made

    def refused(self) -> str | None:
        """Why its engine does not serve the cell with this gate."""
        layer = self.layer(2, 2, engine="auto", dtype=torch.float32)
        return ENGINES[self.engine].refuses(layer.first_scan(torch.zeros(1, 1, 2)))

    def equation(self) -> Callable[..., Any]:
        """(weights, x, *state) → (state, gates) of one row."""
        phi = None if self.gate is None else OWN_GATES[self.gate][1] if self.gate in OWN_GATES else PHI[self.gate]
        options = {name: value for name, value in self.options if name != "proj_size"}
        return functools.partial(EQUATIONS[self.cell], phi, **options)


def _variants(layer: type[nn.Module]) -> list[tuple[tuple[str, Any], ...]]:
    """The options that make other cells of one class."""
    arguments = inspect.signature(layer).parameters
    if "tied" in arguments:
        return [(), (("tied", True),)]
    if "memory_size" in arguments:
        return [(("memory_size", 8), ("heads", 2), ("relu", relu)) for relu in (True, False)]
    return [()]


#: One case per cell and variant, with the first gate.
CELL_CASES = [
    Case(name, next(iter(GATES)) if CELLS[name].takes_gate else None, options)
    for name, layer in LAYERS.items()
    for options in _variants(layer)
]
#: Every cell × gate.
ALL_CASES = [
    Case(case.cell, gate, case.options) for case in CELL_CASES for gate in (GATES if case.takes_gate else [None])
]
#: Every cell that takes a gate × custom gates.
OWN_CASES = [Case(case.cell, gate, case.options) for case in CELL_CASES if case.takes_gate for gate in OWN_GATES]
#: Every cell that takes a gate × gate.
GATED_CASES = [case for case in ALL_CASES if case.takes_gate]
#: Every cell with the sigmoid and with a gate that has an auxiliary pre-activation.
AUX_CASES = [case for case in ALL_CASES if case.aux or case in CELL_CASES]


#: The engines that run outside graphs; the others are tested where torch compiles and exports.
EAGER = [name for name, engine in ENGINES.items() if not engine.in_graphs_only]


def on_engines(cases: list[Case]) -> list[Case]:
    """The cases on every engine that serves them."""
    found = [replace(case, engine=engine) for engine in EAGER for case in cases]
    return [case for case in found if case.refused() is None]


def spread(module: nn.Module, scale: float = 0.4, seed: int = 0) -> None:
    """Parameters of size `scale`, biases and scalars included. 0.4 bends every gate; much more would overflow the
    plain equations of the steepest one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            draw = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(scale * draw / max(1.0, parameter.shape[-1] ** 0.5 if parameter.dim() > 1 else 1.0))


def by_layer(module: nn.Module) -> dict[str, dict[str, Tensor]]:
    """The parameters keyed l0, l0_reverse, …, then by name without this ending."""
    layers: dict[str, dict[str, Tensor]] = {}
    for name, parameter in module.named_parameters():
        stem, key = name.rsplit("_l", 1)
        layers.setdefault("l" + key, {})[stem] = parameter
    return layers


def random_state(layer: Any, batch: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    return tuple(
        torch.randn(rows, batch, size, generator=generator, dtype=torch.float64).to(dtype)
        for size in layer.cell.state_sizes(layer.hidden_size)
    )


def as_argument(state: tuple[Tensor, ...]) -> Any:
    """The state as a layer takes and gives it."""
    return state if len(state) > 1 else state[0]


def as_tuple(state: Any) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else tuple(state)
