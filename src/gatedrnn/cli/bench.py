"""``gatedrnn bench``: comparison with torch.nn, the Python loop and torchrecurrent."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gatedrnn.cli.failure import Failure, code_of


@dataclass(frozen=True)
class Bench:
    """Compare the speed of the CPU engine with torch.nn and other implementations. The results of each are
    checked first; a wrong result stops the benchmark.

    Close other programs first: they would slow it down.
    """

    out: Path
    """Folder for bench.json, bench.md and the plot; created if it does not exist."""
    suite: Literal["targets", "engine", "paper", "sweep", "quick"] = "targets"
    """targets: LSTM and GRU against torch.nn, each ratio with its target; engine: more targets, for custom gates, every
    cell, hard and small shapes and single steps; paper: the paper's shapes; sweep: over T, B and H; quick: seconds."""
    rounds: int = 7
    """Number of times each implementation is timed."""
    shapes: str | None = None
    """For --suite paper, separated by commas: adding, copy, psmnist, psmnist_small, ptb, speech. (default: all)"""

    def run(self) -> None:
        """Measure, print the table, write the files."""
        from gatedrnn.bench import bars, engine, report, suites  # here, not above: --help should not wait for it
        from gatedrnn.bench.check import WrongResultError
        from gatedrnn.bench.measure import Timing
        from gatedrnn.bench.work import PAPER

        if self.rounds < 1:
            raise Failure(f"--rounds must be at least 1, got {self.rounds}")
        if self.shapes is not None and self.suite != "paper":
            raise Failure(f"--shapes is for --suite paper, not for --suite {self.suite}")
        names = list(PAPER) if self.shapes is None else [name.strip() for name in self.shapes.split(",")]
        if unknown := [name for name in names if name not in PAPER]:
            raise Failure(f"--shapes must be among {', '.join(PAPER)}, got {unknown[0]!r}")
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise Failure(f"cannot write to {self.out}: {wrong}", code=code_of(wrong)) from wrong
        measured: list[bars.Bar] = []
        timings: list[Timing] = []
        memory: list[dict[str, object]] = []
        try:
            if self.suite in ("targets", "engine"):
                run = bars.run_bars if self.suite == "targets" else engine.run_engine
                measured, timings = run(self.rounds, _say)
                report.write(self.out, self.suite, measured, timings, memory)
            else:
                suite = {"paper": suites.paper(self.rounds, _say, names), "sweep": suites.sweep(self.rounds, _say)}
                for times, peaks in suite.get(self.suite, suites.quick(self.rounds, _say)):
                    timings += times
                    memory += peaks
                    report.write(self.out, self.suite, measured, timings, memory)  # an interruption loses one shape
        except (WrongResultError, RuntimeError) as wrong:
            raise Failure(str(wrong), code=1) from wrong
        print(report.markdown(measured, timings))
        print(f"bench.json, bench.md and the plot are in {self.out}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
