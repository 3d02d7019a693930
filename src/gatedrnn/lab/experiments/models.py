"""The paper's models by the paper's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatedrnn.lab.experiments.base import Variant
from gatedrnn.lab.models import Model

# Gate and initialisation of the tied LSTMs, and of the GRUs, which have all of these except chrono.
_GATES: dict[str, tuple[str, str]] = {
    "softsign": ("softsign", "constant"),
    "sigmoid": ("sigmoid", "constant"),
    "refine": ("refine", "constant"),
    "UR": ("refine", "uniform"),
    "fast": ("fast", "constant"),
    "UF": ("fast", "uniform"),
    "iterated_fast": ("iterated_fast", "constant"),
    "chrono": ("sigmoid", "chrono"),
}
#: All names, in the order of the paper's tables.
MODEL_NAMES = (*_GATES, "JANET", "NRU")
HEADS = 4
#: The suffix of a GRU's name.
GRU_SUFFIX = "-GRU"
#: What the paper does not specify about its NRU; docs/nru.md describes what was tried.
NRU_DIFFERENCE = "the paper does not state which options of the NRU authors' code it uses: here, rectified heads"


def variants(
    names: tuple[str, ...],
    hidden_size: int,
    memory_size: int = 64,
    lrs: Mapping[str, float] | None = None,
    **others: Any,
) -> tuple[Variant, ...]:
    """Models by name; ``memory_size`` is for the NRU, ``lrs`` are the learning rates of single models, ``others`` are
    options of all of them.

    GRUs are named as in the paper: fast-GRU, UR-GRU.
    """
    sizes = {"hidden_size": hidden_size, **others}
    return tuple(Variant(name, _model(name, memory_size, sizes), (lrs or {}).get(name)) for name in names)


def _model(name: str, memory_size: int, sizes: Mapping[str, Any]) -> Model:
    if name == "NRU":
        return Model(cell="nru", memory_size=memory_size, heads=HEADS, **sizes)
    if name == "JANET":
        return Model(cell="janet", forget_gate="sigmoid", forget_init="chrono", **sizes)
    gate, init = _GATES[name.removesuffix(GRU_SUFFIX)]
    if name.endswith(GRU_SUFFIX):
        return Model(cell="gru", forget_gate=gate, forget_init=init, **sizes)
    return Model(cell="lstm", tied=True, forget_gate=gate, forget_init=init, **sizes)
