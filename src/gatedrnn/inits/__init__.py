"""Initialisers of the forget bias, and so of the initial time scales of a layer."""

from __future__ import annotations

import dataclasses

from gatedrnn.inits.base import ForgetInit
from gatedrnn.inits.chrono import Chrono
from gatedrnn.inits.constant import Constant
from gatedrnn.inits.power_law import PowerLaw
from gatedrnn.inits.uniform import Uniform

#: The initialisers by name.
INITS: dict[str, type[ForgetInit]] = {
    "constant": Constant,
    "chrono": Chrono,
    "uniform": Uniform,
    "power_law": PowerLaw,
}


def resolve(init: str | ForgetInit) -> ForgetInit:
    """The initialiser of that name, where it needs no argument, or the initialiser itself."""
    if isinstance(init, ForgetInit):
        return init
    if not isinstance(init, str):
        raise TypeError(f"an initialiser is a name or an object of gatedrnn.inits, got {init!r}")
    if init not in INITS:
        raise ValueError(f"unknown initialiser {init!r}; known initialisers: {', '.join(INITS)}")
    kind = INITS[init]
    required = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]  # type: ignore[arg-type]
    if required:
        arguments = ", ".join(f"{name}=…" for name in required)
        raise ValueError(f"the initialiser {init!r} needs an argument: pass {kind.__name__}({arguments})")
    return kind()


__all__ = ["INITS", "Chrono", "Constant", "ForgetInit", "PowerLaw", "Uniform", "resolve"]
