"""The paper's models by the paper's names."""

from __future__ import annotations

from collections.abc import Mapping

from gatedrnn.lab.experiments.base import Variant
from gatedrnn.lab.models import Model

# Gate and initialisation of the tied LSTMs, and of the GRUs, which have the same but for chrono.
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
#: What the paper leaves open about its NRU; docs/nru.md has what was tried.
NRU_DIFFERENCE = "the paper does not say which options of its authors' code the NRU has: ours rectifies its heads"


def variants(
    names: tuple[str, ...], hidden_size: int, memory_size: int = 64, lrs: Mapping[str, float] | None = None
) -> tuple[Variant, ...]:
    """Models by name; ``memory_size`` is for the NRU, ``lrs`` are learning rates of their own."""
    return tuple(Variant(name, _model(name, hidden_size, memory_size), (lrs or {}).get(name)) for name in names)


def gru_variants(names: tuple[str, ...], hidden_size: int) -> tuple[Variant, ...]:
    """GRUs with these gates, named as in the paper: fast-GRU, UR-GRU."""
    made = []
    for name in names:
        gate, init = _GATES[name]
        model = Model(cell="gru", hidden_size=hidden_size, forget_gate=gate, forget_init=init)
        made.append(Variant(f"{name}-GRU", model))
    return tuple(made)


def _model(name: str, hidden_size: int, memory_size: int) -> Model:
    if name == "NRU":
        return Model(cell="nru", hidden_size=hidden_size, memory_size=memory_size, heads=HEADS)
    if name == "JANET":
        return Model(cell="janet", hidden_size=hidden_size, forget_gate="sigmoid", forget_init="chrono")
    gate, init = _GATES[name]
    return Model(cell="lstm", hidden_size=hidden_size, tied=True, forget_gate=gate, forget_init=init)
