"""The figure and the numbers of the README's first screen, made from the records in results/ and benchmarks/:

python docs/first_screen.py
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from gatedrnn.lab.analysis import Arrival, arrival, paired
from gatedrnn.lab.experiments import EXPERIMENTS
from gatedrnn.lab.experiments.models import GRU_SUFFIX
from gatedrnn.lab.records import RunRecord, find_runs, read_run
from gatedrnn.theory.canvas import new_figure, render
from gatedrnn.theory.palette import looks

ROOT = Path(__file__).parent.parent
README, FIGURE = ROOT / "README.md", ROOT / "docs" / "images" / "learning_curve.svg"
GATES = ("sigmoid", "fast")
ADDING, COPY = EXPERIMENTS["fig:adding_mse"], EXPERIMENTS["fig:copy_accuracy"]
#: The records of each machine, one for each suite that ran there.
BENCHMARKS = (("two-cores-avx2",), ("two-cores-avx512-amd", "two-cores-avx512-amd-engine"))
SPEEDS = {  # a bar of the benchmark, and what to call it; the last ones are those without a gain
    "untied sigmoid LSTM ÷ torch.nn.LSTM, H=128": "LSTM, 128 units",
    "untied sigmoid LSTM ÷ torch.nn.LSTM, H=512": "LSTM, 512 units",
    "tied fast LSTM ÷ torch.nn.LSTM, H=128": "tied LSTM with the fast gate, 128 units",
    "tied fast LSTM ÷ torch.nn.LSTM, H=512": "tied LSTM with the fast gate, 512 units",
    "GRU ÷ torch.nn.GRU, H=128": "GRU, 128 units",
    "GRU ÷ torch.nn.GRU, H=512": "GRU, 512 units",
    "inference ÷ torch.nn.LSTM, H=128, batch 1": "LSTM, 128 units, inference with batch 1",
    "untied sigmoid LSTM 35×20×200×200, layers: 2, ÷ torch.nn.LSTM": "LSTM, two layers of 200 units, T=35, batch 20",
    "LSTMCell, B=1, training, 20 steps ÷ torch.nn.LSTMCell": "`LSTMCell`, 128 units, 20 steps with batch 1",
}
#: For each real data set the grid whose runs at desk budget are the longest, with an LSTM and where there is one with a
#: GRU, and what was run in the paper's setting: the grid, the budget, what follows the gate's name in that of the
#: model, and what to call the runs.
REAL = (
    ("small_psmnist", "desk", "", "psMNIST, digits read in 784 steps, 128 units, {epochs} epochs: accuracy"),
    ("large_psmnist", "paper", "", "psMNIST, 512 units, the first {epochs} of the paper's 150 epochs: accuracy"),
    ("large_psmnist", "desk", GRU_SUFFIX, "psMNIST with a GRU, {epochs} epochs: accuracy"),
    ("small_smnist", "desk", "", "sMNIST, digits read in 784 steps, 128 units, {epochs} epochs: accuracy"),
    ("large_smnist", "desk", GRU_SUFFIX, "sMNIST with a GRU, {epochs} epochs: accuracy"),
    ("small_scifar", "desk", "", "sCIFAR, photographs read in 1,024 steps, 128 units, {epochs} epochs: accuracy"),
    ("large_scifar", "desk", GRU_SUFFIX, "sCIFAR with a GRU, {epochs} epochs: accuracy"),
    ("speech", "desk", "", "Speech Commands, 2,000 clips of 16,000 steps, 64 units, {epochs} epochs: accuracy"),
    ("ptb", "desk", "", "Penn Treebank, three layers, {epochs} epochs: perplexity (lower is better)"),
)
SERIES = ROOT / "results" / "series" / "plaid.json"
SERIES_NAME = "PLAID, currents of appliances, 100 to 1,344 steps, 32 units, {epochs} epochs: accuracy"

Runs = dict[str, list[RunRecord]]


def by_length(task: str) -> dict[int, Runs]:
    """By the length of the sequences, from the shortest: the runs of both gates, the same seeds of each."""
    found: dict[int, dict[str, dict[int, RunRecord]]] = {}
    for run in (read_run(folder) for folder in find_runs(ROOT / "results" / task)):
        declared = run.options["declared"]
        if declared["model"] in GATES:
            both = found.setdefault(run.options["task"]["length"], {gate: {} for gate in GATES})
            both[declared["model"]][declared["seed"]] = run
    chosen = {}
    for length, both in sorted(found.items()):
        seeds = sorted(set.intersection(*(set(runs) for runs in both.values())))
        if seeds:
            chosen[length] = {gate: [both[gate][seed] for seed in seeds] for gate in GATES}
    return chosen


def draw() -> Figure:
    """The error on the adding task against updates, a panel for each length and a line for each seed."""
    lengths = by_length("adding")
    figure, panels = new_figure(1, len(lengths), (7.5, 3.6))
    for panel, (length, runs) in zip(panels, lengths.items(), strict=True):
        for gate, look in looks(GATES).items():
            for place, run in enumerate(runs[gate]):
                x = [line["update"] for line in run.metrics]
                label = f"{gate} gate" if place == 0 else None
                panel.plot(x, [line["mse"] for line in run.metrics], color=look.colour, linewidth=1.2, label=label)
        panel.axhline(ADDING.threshold, color="0.4", linewidth=0.8, linestyle="--")
        panel.set(yscale="log", xlabel="updates", ylabel="mean squared error")
        panel.set_title(f"Adding, {length:,} steps ({_seeds(runs)})")
        panel.legend()
    return figure


def learning() -> str:
    """The updates that both gates need, on both tasks and at each length."""
    names = ((ADDING, "adding, {} steps: MSE {}"), (COPY, "copying 10 symbols over {} steps: accuracy {}"))
    rows = [["updates to a given result", "seeds", "fast gate", "sigmoid gate", "fast first"], ["---"] * 5]
    for item, name in names:
        for length, runs in by_length(item.tasks[0]).items():
            fast, sigmoid = (
                [arrival(run.metrics, item.metric, item.threshold, item.lower_is_better) for run in runs[gate]]
                for gate in ("fast", "sigmoid")
            )
            what, seeds = name.format(f"{length:,}", item.threshold), str(len(fast))
            rows.append([what, seeds, _after(fast), _after(sigmoid), _firsts(fast, sigmoid)])
    return _table(rows)


def real_data() -> str:
    """The test results of both gates after the same number of epochs, on each real data set."""
    series = json.loads(SERIES.read_text())
    measured = {gate: [run["test"] for run in series["runs"] if run["model"] == f"{gate}, Chrono"] for gate in GATES}
    rows = [["test result", "seeds", "fast gate", "sigmoid gate"], ["---"] * 4]
    rows.append(_tested(SERIES_NAME, series["settings"]["epochs"], measured))
    for grid, budget, suffix, name in REAL:
        runs = {gate: read_run(ROOT / "results" / grid / budget / f"{gate}{suffix}" / "seed0") for gate in GATES}
        (epochs,) = {run.metrics[-1]["epoch"] for run in runs.values()}
        measured = {gate: [run.record["test"][run.record["metric"]]] for gate, run in runs.items() if run.record}
        rows.append(_tested(name, epochs, measured))
    return _table(rows)


def speed() -> str:
    """A table of ratios to torch.nn's time, one column for each machine."""
    titles, measured = [], []
    for names in BENCHMARKS:
        benches = [json.loads((ROOT / "benchmarks" / name / "bench.json").read_text()) for name in names]
        machine = benches[0]["machine"]
        titles.append(f"{machine['cores']} cores, {machine['processor']}, {machine['instruction_set']}")
        measured.append({bar["name"]: bar["measured"] for bench in benches for bar in bench["bars"]})
    rows = [[name, *(_ratio(bars.get(bar)) for bars in measured)] for bar, name in SPEEDS.items()]
    return _table([["time ÷ torch.nn's", *titles], ["---"] * (len(titles) + 1), *rows])


BLOCKS = {"learning": learning, "speed": speed, "real-data": real_data}


def with_blocks(text: str) -> str:
    """The README with each block between its marks made anew."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- {name}: generated by `python docs/first_screen.py` -->\n", f"\n<!-- end of {name} -->"
        if (text.count(begin), text.count(end)) != (1, 1):
            raise ValueError(f"README.md must have the marks of the block {name} once")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = before + begin + make() + end + after
    return text


def figure() -> bytes:
    return render(draw)["svg"]


def _firsts(fast: Sequence[Arrival], sigmoid: Sequence[Arrival]) -> str:
    """With how many seeds the fast gate was first."""
    count = paired(dict(enumerate(fast)), dict(enumerate(sigmoid)))
    test = f" (sign test, p = {count.p:.2f})" if count.p is not None and count.n > 1 else ""
    undecided = f", {count.open} undecided" if count.open else ""
    return f"{count.first} of {count.n}{undecided}{test}"


def _after(runs: Sequence[Arrival]) -> str:
    reached = [run.at for run in runs if run.at is not None]
    if not reached:
        return f"not reached by update {min(run.watched for run in runs):,.0f}"
    if len(reached) < len(runs):
        return f"reached with {len(reached)} of {len(runs)} seeds"
    return _spread(reached)


def _tested(name: str, epochs: float, measured: dict[str, list[float]]) -> list[str]:
    """A row of test results. An accuracy is shown in percent."""
    percent = name.endswith("accuracy")
    shown = [
        _spread([100 * value if percent else value for value in measured[gate]], 1) for gate in ("fast", "sigmoid")
    ]
    return [
        name.format(epochs=f"{epochs:.0f}"),
        str(len(measured["fast"])),
        *(f"{value} %" if percent else value for value in shown),
    ]


def _spread(values: Sequence[float], decimals: int = 0) -> str:
    mean = f"{statistics.mean(values):,.{decimals}f}"
    return mean + (f" ± {statistics.stdev(values):,.{decimals}f}" if len(values) > 1 else "")


def _seeds(runs: Runs) -> str:
    count = len(runs["fast"])
    return "one seed" if count == 1 else f"{count} seeds"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _ratio(measured: dict[str, Any] | None) -> str:
    return "not measured" if measured is None else f"{measured['median']:.2f}"


def main() -> None:
    README.write_text(with_blocks(README.read_text()))
    FIGURE.write_bytes(figure())


if __name__ == "__main__":
    main()
