"""Peak memory of one step, in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from gatedrnn.bench.contestants import Contestant
from gatedrnn.bench.work import Data, Shape, Work


def peak(contestant: Contestant, work: Work) -> tuple[int, int]:
    """Peak memory in bytes: of the step alone (less the process after import and data), and of the whole process."""
    order = json.dumps({"contestant": asdict(contestant), "shape": asdict(work.shape), "loss": work.loss})
    done = subprocess.run(
        [sys.executable, "-m", "gatedrnn.bench.memory"], input=order, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{contestant.name} at {work.shape}: {done.stderr.strip().splitlines()[-1]}")
    before, after = json.loads(done.stdout)
    return after - before, after


def _high_water() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would start with the peak of the parent process
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def _serve() -> None:
    order = json.load(sys.stdin)
    contestant = Contestant(**order["contestant"])
    work = Work(Shape(**order["shape"]), order["loss"])
    layer, data = contestant.build(work.shape), Data.draw(work)
    # A first step on two rows loads what torch loads late.
    small = Work(Shape(2, 2, work.shape.I, work.shape.H), work.loss)
    contestant.run(layer, Data.draw(small))
    before = _high_water()
    contestant.run(layer, data)
    print(json.dumps([before, _high_water()]))


if __name__ == "__main__":
    _serve()
