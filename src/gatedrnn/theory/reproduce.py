"""One call that regenerates the theory: numbers, table and figures, for any gates."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gatedrnn import gates as registry
from gatedrnn.files import check_folder, write
from gatedrnn.gates import Gate
from gatedrnn.theory import figures, files
from gatedrnn.theory.numbers import collect, pieces
from gatedrnn.theory.table import comparison_table

#: progress(done, total, what): called before each piece of work, and once at the end with done = total.
Progress = Callable[[int, int, str], None]

# What the paper's figures show. Used when no gates are asked for; else every figure shows every gate asked for.
_PAPER = {
    "fig:saturation": ("softsign", "sigmoid", "fast"),
    "fig:demo": ("softsign", "sigmoid", "refine", "fast"),
}


def run(
    gates: Sequence[str | Gate] | None = None,
    out: str | os.PathLike[str] = "theory",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Regenerate the paper's theory and write it into the folder ``out``; return the numbers.

    Args:
        gates: Names and gate objects, including custom gates. Default: all built-in gates
        out: Folder; created if it does not exist. Default: ``"theory"``
        progress: Called as ``progress(done, total, what)``. Default: ``None``

    Written: ``theory.json`` (every number drawn), ``tab_gates_comparison.md``, and ``fig_saturation``, ``fig_demo``,
    ``fig_gates_gradient``, ``fig_demo_other``, each as PNG and SVG. Nothing is written before all is computed.
    The returned value is the content of theory.json.

    Raises ValueError for a name that is not known or a gate given twice, OSError if ``out`` cannot be written to.
    """
    chosen, folder = check_arguments(gates, out)
    total = pieces(chosen) + len(figures.FIGURES) + 1
    done = 0

    def step(what: str) -> None:
        nonlocal done
        if progress is not None:
            progress(done, total, what)
        done += 1

    # A gate of the user's may leave float64 (reach 1, say); what is not finite becomes null, and the file says why.
    with np.errstate(all="ignore"):
        numbers: dict[str, Any] = files.clean(collect(chosen, step))
    names = [registry.name_of(gate) for gate in chosen]
    contents = {
        files.NUMBERS: files.strict_json(numbers).encode(),
        files.file_of("tab:gates_comparison", "md"): comparison_table(chosen, numbers).encode(),
    }
    for label, draw in figures.FIGURES.items():
        step(label)
        shown = names if gates is not None else [name for name in _PAPER.get(label, names) if name in names]
        for kind, content in draw(numbers, shown).items():
            contents[files.file_of(label, kind)] = content
    step(f"writing to {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write(folder / name, content)
    if progress is not None:
        progress(total, total, "done")
    return numbers


def check_arguments(gates: Sequence[str | Gate] | None, out: str | os.PathLike[str]) -> tuple[list[Gate], Path]:
    """The gates as objects and the folder as a path; raises what :func:`run` would, and writes nothing."""
    chosen = _resolve(gates)
    check_folder(Path(out))
    return chosen, Path(out)


def _resolve(gates: Sequence[str | Gate] | None) -> list[Gate]:
    if isinstance(gates, str):
        raise TypeError(f"gates must be a list of names and gate objects, got the string {gates!r}")
    chosen = [registry.resolve(gate) for gate in (registry.GATES if gates is None else gates)]
    if not chosen:
        raise ValueError(f"no gates given; known gates: {', '.join(registry.GATES)}")
    names = [registry.name_of(gate) for gate in chosen]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the gate {name} is given twice")
    return chosen
