"""The names by which the library knows cells and gates.

A subclass may change the maths, so only the classes themselves have a name.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatedrnn import cells, gates

_GATES: dict[type[gates.Gate], str] = {
    gates.Sigmoid: "sigmoid",
    gates.Softsign: "softsign",
    gates.Fast: "fast",
    gates.IteratedFast: "iterated_fast",
    gates.Polynomial: "polynomial",
    gates.Refine: "refine",
}


def gate_name(gate: gates.Gate) -> str | None:
    return _GATES.get(type(gate))


def gate_named(name: str, coefficients: Sequence[float]) -> gates.Gate:
    kind = next(kind for kind, known in _GATES.items() if known == name)
    return gates.Polynomial(tuple(coefficients)) if kind is gates.Polynomial else kind()


def cell_name(cell: cells.Cell) -> str | None:
    if type(cell) is cells.LSTM:
        return "lstm_tied" if cell.tied else "lstm"
    return {cells.GRU: "gru", cells.JANET: "janet"}.get(type(cell))


def cell_named(name: str, proj_size: int, beta: float) -> cells.Cell:
    if name == "gru":
        return cells.GRU()
    return cells.JANET(beta=beta) if name == "janet" else cells.LSTM(tied=name == "lstm_tied", proj_size=proj_size)
