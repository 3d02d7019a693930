"""``gatedrnn theory``: the paper's theory, regenerated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gatedrnn.cli.failure import Failure, code_of
from gatedrnn.cli.progress import shown


@dataclass(frozen=True)
class Theory:
    """Regenerate the figures, the table and the numbers of the theory, for any built-in gates.

    Custom gates are passed in Python: gatedrnn.theory.run(gates=[...], out=...).
    """

    out: Path
    """Folder for the results; created if it does not exist."""
    gates: str | None = None
    """Names of gates, separated by commas (see: gatedrnn list). (default: all)"""

    def run(self) -> None:
        """Write the results and print their folder."""
        regenerate(self.out, self.gates)


def regenerate(out: Path, names: str | None) -> None:
    """Run the theory under a progress display; wrong names and folders end in one line before anything is written."""
    from gatedrnn import theory  # here, not above: it takes seconds to import, and --help should not

    chosen = None if names is None else [name.strip() for name in names.split(",") if name.strip()]
    try:
        theory.check_arguments(chosen, out)
    except (ValueError, OSError) as wrong:
        raise Failure(str(wrong)) from wrong
    try:
        with shown() as progress:
            theory.run(chosen, out, progress)
    except OSError as wrong:
        raise Failure(f"cannot write to {out}: {wrong}", code=code_of(wrong)) from wrong
    print(f"figures, table and numbers are in {out}")
