"""Who is timed: our layers on an engine, torch.nn, the Python loop, torchrecurrent."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gatedrnn import layers
from gatedrnn.bench.work import Data, Shape, step
from gatedrnn.gates import Gate, Sigmoid


@dataclass(frozen=True, eq=False)
class Contestant:
    """A layer and how to run it."""

    name: str
    #: A key of gatedrnn.layers.LAYERS.
    cell: str
    #: Options of the layer; for torch.nn and torchrecurrent there are none.
    options: dict[str, Any] = field(default_factory=dict)
    library: str = "gatedrnn"
    #: torch.set_flush_denormal during the step: torch.nn's best setting for gradients that decay.
    flush_denormal: bool = False
    threads: int = 2
    #: How a ragged batch is given: torch.nn knows packing only.
    packed: bool = False
    layers: int = 1
    #: The single-step module, called step after step.
    single: bool = False
    #: Steps of the check of its values; a longer sequence is cut.
    checked_steps: int = 500

    def build(self, shape: Shape) -> nn.Module:
        torch.manual_seed(0)
        if self.single:
            if self.library == "torch.nn":
                return _Unrolled(getattr(nn, layers.STEPS[self.cell].__name__)(shape.I, shape.H))
            return _Unrolled(_single_step(self.cell)(shape.I, shape.H, **self.options))
        if self.library == "torch.nn":
            kind = getattr(nn, layers.LAYERS[self.cell].__name__)
            return kind(shape.I, shape.H, self.layers)  # type: ignore[no-any-return]
        if self.library == "torchrecurrent":
            module = importlib.import_module("torchrecurrent")
            return getattr(module, layers.LAYERS[self.cell].__name__)(shape.I, shape.H)  # type: ignore[no-any-return]
        return _layer(self.cell)(shape.I, shape.H, self.layers, **self.options)

    def run(self, layer: nn.Module, data: Data) -> Tensor:
        lengths = data.work.lengths()
        arguments = {} if lengths is None or self.packed else {"lengths": lengths}
        with _settings(self.threads, self.flush_denormal):
            for _ in range(data.work.repeats - 1):
                step(layer, data, **arguments)
            return step(layer, data, **arguments)

    def prepare(self, data: Data) -> Data:
        """The data as this contestant takes them; not timed."""
        return data.packed() if self.packed and data.work.shortest is not None else data

    def truth(self, layer: nn.Module, shape: Shape) -> tuple[nn.Module, dict[str, str]]:
        """The reference engine in float64 with the layer's weights, and our names for the layer's parameters."""
        options = {**self.options, "engine": "reference", "recompute": False}
        if self.library != "gatedrnn":
            options["forget_gate"] = Sigmoid()
        reference = _layer(self.cell)(shape.I, shape.H, self.layers, dtype=torch.float64, **options)
        ours = {name.removesuffix("_l0"): name for name in reference.state_dict()}
        names = {name: ours[short] for name in layer.state_dict() if (short := _short(name)) in ours}
        if set(names.values()) != set(ours.values()):
            raise ValueError(f"{self.name}: parameters {sorted(layer.state_dict())} do not match {sorted(ours)}")
        reference.load_state_dict({names[name]: layer.state_dict()[name].double() for name in names})
        return reference, names


class _Unrolled(nn.Module):
    """A single-step module as a layer."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, input: Tensor) -> tuple[Tensor, ...]:
        state, outputs = None, []
        for x in input.unbind():
            state = self.cell(x, state)
            outputs.append(state[0] if isinstance(state, tuple) else state)
        return (torch.stack(outputs),)


def _layer(cell: str) -> Callable[..., nn.Module]:
    return layers.LAYERS[cell]


def _single_step(cell: str) -> Callable[..., nn.Module]:
    return layers.STEPS[cell]


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1].removesuffix("_l0")


@contextmanager
def _settings(threads: int, flush_denormal: bool) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush_denormal)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)


def ours(cell: str, gate: str | Gate = "sigmoid", engine: str = "auto", threads: int = 2, **options: Any) -> Contestant:
    """Our layer, named by what distinguishes it."""
    extras = [name if value is True else f"{name}={value}" for name, value in options.items() if value]
    name = " ".join(["gatedrnn", cell, str(gate), *extras, engine, *([f"{threads} threads"] if threads != 2 else [])])
    return Contestant(name, cell, {"forget_gate": gate, "engine": engine, **options}, threads=threads)


def peer(cell: str, flush_denormal: bool = True, packed: bool = False) -> Contestant:
    """torch.nn's layer."""
    name = f"torch.nn {cell}" + (" flush" if flush_denormal else "") + (" packed" if packed else "")
    return Contestant(name, cell, library="torch.nn", flush_denormal=flush_denormal, packed=packed)


def torchrecurrent(cell: str) -> Contestant | None:
    """The package of that name, where it is installed: it has no native kernels, but some of our cells."""
    try:
        importlib.import_module("torchrecurrent")
    except ImportError:
        return None
    return Contestant(f"torchrecurrent {cell}", cell, library="torchrecurrent", flush_denormal=True)
