"""``gatedrnn list``: what there is to choose from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from gatedrnn import gates, inits


@dataclass(frozen=True)
class List:
    """List the gates and the initialisers by name."""

    def run(self) -> None:
        """Print two tables."""
        console = Console()
        known = _table("gate", "order of saturation", "pre-activations", "bias with φ(b) = σ(1)")
        for name, kind in gates.GATES.items():
            gate = kind()
            roots = gate.inverse(0.731058578630004879251)
            bias = ", ".join(f"{float(b):.6f}" for b in (roots if isinstance(roots, tuple) else (roots,)))
            known.add_row(name, gate.saturation, str(gate.preactivations), bias)
        console.print(known)
        starts = _table("initialiser", "written as", "what it does")
        for name, init in inits.INITS.items():
            fields = ", ".join(_argument(field) for field in dataclasses.fields(init))  # type: ignore[arg-type]
            starts.add_row(name, f"{init.__name__}({fields})", (init.__doc__ or "").strip().splitlines()[0])
        console.print(starts)


def _argument(field: dataclasses.Field[object]) -> str:
    return f"{field.name}=…" if field.default is dataclasses.MISSING else f"{field.name}={field.default:.6g}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
