"""``gatedrnn report``: a folder of runs as tables, figures and a page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gatedrnn.cli.failure import Failure, code_of
from gatedrnn.cli.progress import shown


@dataclass(frozen=True)
class Report:
    """Compare the runs of a folder with the paper's values: report.md, figures, and one page for the browser."""

    runs: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUNS")]
    """Folder with runs; subfolders are searched too."""
    out: Path
    """Folder for the report; created if it does not exist. A folder with other content is refused."""
    theory: Path | None = None
    """Output folder of gatedrnn theory, to include its figures and table. (default: one in or beside the folder of
    runs)"""

    def run(self) -> None:
        """Write the report and print its path."""
        from gatedrnn.lab.report import PAGE, make_report  # here, not above: --help should not wait for it

        try:
            with shown() as progress:
                warnings = make_report(self.runs, self.out, progress, theory=self.theory)
        except (ValueError, OSError) as wrong:
            raise Failure(str(wrong), code=code_of(wrong)) from wrong
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        print(f"report: {self.out / PAGE}")
