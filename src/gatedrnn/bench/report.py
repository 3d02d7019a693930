"""The output of a benchmark: bench.json, a Markdown table and a plot."""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib
import torch

from gatedrnn import files
from gatedrnn.bench.bars import Bar
from gatedrnn.bench.measure import Timing

matplotlib.use("Agg")
from matplotlib import pyplot

SCHEMA = 1


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "instruction_set": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
    }


def write(
    out: Path, suite: str, bars: Sequence[Bar], timings: Sequence[Timing], memory: Sequence[dict[str, object]]
) -> None:
    """Write the files of one run; each appears whole."""
    record = {
        "schema": SCHEMA,
        "suite": suite,
        "machine": machine(),
        "bars": [{**asdict(bar), "verdict": bar.verdict} for bar in bars],
        "timings": [timing.as_json() for timing in timings],
        "memory": list(memory),
    }
    files.write(out / "bench.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    files.write(out / "bench.md", markdown(bars, timings).encode())
    if timings:
        for kind in ("png", "svg"):
            files.write(out / f"bench.{kind}", plot(timings, kind))


def markdown(bars: Sequence[Bar], timings: Sequence[Timing]) -> str:
    lines = []
    if bars:
        lines += ["| what | measured (interquartile range) | must | aim | reached |", "| --- | --- | --- | --- | --- |"]
        for bar in bars:
            sign = "≥" if bar.higher_is_better else "≤"
            lines.append(
                f"| {bar.name} | {bar.measured}{bar.unit} | {sign} {bar.must:g} | {sign} {bar.aim:g} | {bar.verdict} |"
            )
        lines.append("")
    if timings:
        lines += ["| T×B×I×H | loss | implementation | µs per step | error |", "| --- | --- | --- | --- | --- |"]
        for t in timings:
            lines.append(f"| {t.shape} | {t.loss} | {t.contestant} | {t.microseconds_a_step():.1f} | {t.error:.0e} |")
    return "\n".join(lines) + "\n"


def plot(timings: Sequence[Timing], kind: str) -> bytes:
    """Microseconds a step, one group of bars per shape and loss, as a picture of this kind."""
    groups: dict[str, list[Timing]] = {}
    for timing in timings:
        groups.setdefault(f"{timing.shape}, {timing.loss}", []).append(timing)
    rows = sum(len(group) + 1 for group in groups.values())
    figure, axes = pyplot.subplots(figsize=(8, 0.6 + 0.19 * rows), layout="constrained")
    position, ticks, labels = 0, [], []
    for title, group in groups.items():
        axes.text(
            1,
            position,
            title,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontweight="bold",
            fontsize=7,
        )
        position += 1
        for timing in group:
            colour = "0.6" if not timing.contestant.startswith("gatedrnn") else "tab:red"
            axes.barh(position, timing.microseconds_a_step(), color=colour, height=0.8)
            ticks.append(position)
            labels.append(timing.contestant)
            position += 1
    axes.set_yticks(ticks, labels, fontsize=6)
    axes.set_ylim(position, -1)
    axes.set_xscale("log")
    axes.set_xlabel("microseconds per step (median)")
    axes.grid(axis="x", alpha=0.3)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=120, format=kind)
    pyplot.close(figure)
    return picture.getvalue()
