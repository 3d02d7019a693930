"""``gatedrnn demo``: the main job in one command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gatedrnn.cli.theory import regenerate


@dataclass(frozen=True)
class Demo:
    """Show what the library is about: regenerate the theory and say where its figures are."""

    out: Path
    """Folder for the results; made if it does not exist."""

    def run(self) -> None:
        """Write the results and name the figures."""
        regenerate(self.out, None)
        print("the figures:")
        for figure in sorted(self.out.glob("fig_*.png")):
            print(f"  {figure}")
