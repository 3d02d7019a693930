"""Gate functions φ: R → (0, 1), the replaceable part of a gated recurrent layer."""

from __future__ import annotations

from typing import NoReturn

from torch import Tensor, nn

from gatedrnn.gates.base import Gate, SigmoidOf
from gatedrnn.gates.check import check_gate
from gatedrnn.gates.fast import Fast
from gatedrnn.gates.iterated_fast import IteratedFast
from gatedrnn.gates.polynomial import Polynomial
from gatedrnn.gates.refine import Refine
from gatedrnn.gates.sigmoid import Sigmoid
from gatedrnn.gates.softsign import Softsign
from gatedrnn.gates.tracing import program_of

#: The gates by name.
GATES: dict[str, type[Gate]] = {
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "fast": Fast,
    "iterated_fast": IteratedFast,
    "polynomial": Polynomial,
    "refine": Refine,
}


def resolve(gate: str | Gate) -> Gate:
    """The gate of that name with its default arguments, or the gate itself."""
    if isinstance(gate, nn.Module):
        refuse_module(gate)
    if isinstance(gate, Gate):
        for name, value in vars(gate).items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise TypeError(
                    f"{type(gate).__name__}: its field {name} requires a gradient, but the fields of a gate are not "
                    "trained; use detach()"
                )
        return gate
    if not isinstance(gate, str):
        raise TypeError(f"a gate is a name or a Gate object, got {gate!r}")
    if gate not in GATES:
        raise ValueError(f"unknown gate {gate!r}; known gates: {', '.join(GATES)}")
    return GATES[gate]()


def refuse_module(gate: nn.Module) -> NoReturn:
    """Raise the error for a gate that is a module."""
    raise TypeError(
        f"{type(gate).__name__}: a gate must not be an nn.Module; its parameters would not be trained. "
        "Derive it from gatedrnn.gates.Gate or SigmoidOf"
    )


def name_of(gate: Gate) -> str:
    """The gate's name in GATES if it is that gate with default arguments, else its repr."""
    for name, kind in GATES.items():
        if gate == kind():
            return name
    return repr(gate)


__all__ = [
    "GATES",
    "Fast",
    "Gate",
    "IteratedFast",
    "Polynomial",
    "Refine",
    "Sigmoid",
    "SigmoidOf",
    "Softsign",
    "check_gate",
    "name_of",
    "program_of",
    "resolve",
]
