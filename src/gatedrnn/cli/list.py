"""``gatedrnn list``: the gates, initialisers, tasks and sweeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatedrnn import gates, inits
from gatedrnn.cli.progress import console_of
from gatedrnn.cli.streams import encodable

_COLUMNS = ("gate", "φ(z)", "order of saturation", "bias with φ(b) = σ(1)", "extra parameters")


@dataclass(frozen=True)
class List:
    """List the gates, the initialisers, the tasks of gatedrnn train and the labels of gatedrnn sweep."""

    markdown: bool = False
    """Print the table of the gates in Markdown, as in the README."""

    def run(self) -> None:
        """Print the tables."""
        if self.markdown:
            print(gate_table())
            return
        console = console_of("stdout")
        for columns, rows in (
            (_COLUMNS, _gate_rows()),
            (("initialiser", "written as", "what it does"), _init_rows()),
            (("task", "what it is"), _task_rows()),
            (("sweep", "what it trains"), _sweep_rows()),
        ):
            console.print(_table(console, columns, rows), end="\n\n")


def gate_table() -> str:
    """The gates of the registry as a Markdown table."""
    lines = ["| " + " | ".join(_COLUMNS) + " |", "|" + " --- |" * len(_COLUMNS)]
    for name, formula, *rest in _gate_rows():
        # A bar would end the cell.
        lines.append("| " + " | ".join([f"`{name}`", formula.replace("|", "\\|"), *rest]) + " |")
    return "\n".join(lines)


def _gate_rows() -> Iterator[list[str]]:
    for name, kind in gates.GATES.items():
        gate = kind()
        biases = gate.from_logit(torch.ones((), dtype=torch.float64))
        bias = ", ".join(f"{b:.6g}" for b in biases)
        formula = _first_line(kind).removeprefix("φ(z) = ").removesuffix(".")
        yield [name, formula, gate.saturation, bias, "none" if gate.preactivations == 1 else "one block more"]


def _init_rows() -> Iterator[list[str]]:
    for name, init in inits.INITS.items():
        fields = ", ".join(_argument(field) for field in dataclasses.fields(init))  # type: ignore[arg-type]
        yield [name, f"{init.__name__}({fields})", _first_line(init)]


def _task_rows() -> Iterator[list[str]]:
    from gatedrnn.lab.tasks import TASKS  # here, not above: --help should not wait for it

    for name, task in TASKS.items():
        yield [name, _first_line(task)]


def _sweep_rows() -> Iterator[list[str]]:
    from gatedrnn.lab.experiments import EXPERIMENTS, OWN

    for label, item in {**EXPERIMENTS, **OWN}.items():
        if not item.theory:
            yield [label, item.title]


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _argument(field: dataclasses.Field[object]) -> str:
    return f"{field.name}=…" if field.default is dataclasses.MISSING else f"{field.name}={field.default:.6g}"


def _table(console: Console, columns: Iterable[str], rows: Iterable[list[str]]) -> Table:
    """In characters that the console can show; replacing them at printing would misalign the columns."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(encodable(column, console.encoding), overflow="fold")
    for row in rows:
        table.add_row(*(Text(encodable(cell, console.encoding)) for cell in row))
    return table
