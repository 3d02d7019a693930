"""The figure and the numbers of the README's first screen, made from the records in results/ and benchmarks/:

python docs/first_screen.py
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from scipy.stats import binomtest

from gatedrnn.lab.analysis import updates_to
from gatedrnn.lab.records import RunRecord, find_runs, read_run
from gatedrnn.theory.canvas import new_figure, render
from gatedrnn.theory.palette import looks

ROOT = Path(__file__).parent.parent
README, FIGURE = ROOT / "README.md", ROOT / "docs" / "images" / "learning_curve.svg"
GATES = ("sigmoid", "fast")
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


def longest(task: str) -> dict[str, list[RunRecord]]:
    """The runs of both gates at the greatest length at which both have ended, the same number of seeds of each."""
    runs = [read_run(folder) for folder in find_runs(ROOT / "results" / task)]
    ended = [run for run in runs if run.record is not None and run.options["declared"]["model"] in GATES]
    by_length: dict[int, dict[str, dict[int, RunRecord]]] = {}
    for run in ended:
        declared = run.options["declared"]
        found = by_length.setdefault(run.options["task"]["length"], {gate: {} for gate in GATES})
        found[declared["model"]][declared["seed"]] = run
    chosen = by_length[max(length for length, found in by_length.items() if all(found.values()))]
    seeds = sorted(set.intersection(*(set(found) for found in chosen.values())))
    return {gate: [chosen[gate][seed] for seed in seeds] for gate in GATES}


def draw() -> Figure:
    """The error on the adding task against updates, a line for each seed."""
    runs = longest("adding")
    figure, (panel,) = new_figure(1, 1, (7.5, 3.6))
    for gate, look in looks(GATES).items():
        for place, run in enumerate(runs[gate]):
            x = [line["update"] for line in run.metrics]
            label = f"{gate} gate" if place == 0 else None
            panel.plot(x, [line["mse"] for line in run.metrics], color=look.colour, linewidth=1.2, label=label)
    length = runs["fast"][0].options["task"]["length"]
    panel.set(yscale="log", xlabel="updates", ylabel="mean squared error")
    panel.set_title(f"Adding two numbers marked in a sequence of {length} steps")
    panel.legend()
    return figure


def learning() -> str:
    """The sentences under the figure, and beside them those on copy."""
    adding, copy = longest("adding"), longest("copy")
    first = adding["fast"][0].options
    after, before = (_updates(adding, gate) for gate in ("fast", "sigmoid"))
    copied, compared = (_updates(copy, gate) for gate in ("fast", "sigmoid"))
    length, copy_length = first["task"]["length"], copy["fast"][0].options["task"]["length"]
    return (
        f"Adding, T={length}, {first['model']['hidden_size']} units: the layer above with either gate and the same "
        f"initial time scale, one line for each of {len(after)} seeds. The fast gate has a mean squared error of "
        f"{first['training']['target']} after {_spread(after)} updates (mean ± standard deviation), the sigmoid after "
        f"{_spread(before)}; the fast gate is {_firsts(after, before)}.\n"
        f"Copying 10 symbols over {copy_length} steps (accuracy {copy['fast'][0].options['training']['target']}) "
        f"the gain is small and not certain: {_spread(copied)} against {_spread(compared)} updates, the fast gate "
        f"{_firsts(copied, compared)}."
    )


def speed() -> str:
    """A table of ratios to torch.nn's time, one column for each machine."""
    titles, measured = [], []
    for names in BENCHMARKS:
        benches = [json.loads((ROOT / "benchmarks" / name / "bench.json").read_text()) for name in names]
        machine = benches[0]["machine"]
        titles.append(f"{machine['cores']} cores, {machine['processor']}, {machine['instruction_set']}")
        measured.append({bar["name"]: bar["measured"] for bench in benches for bar in bench["bars"]})
    rows = [[name, *(_ratio(bars.get(bar)) for bars in measured)] for bar, name in SPEEDS.items()]
    lines = [["time ÷ torch.nn's", *titles], ["---"] * (len(titles) + 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


BLOCKS = {"learning": learning, "speed": speed}


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


def _updates(runs: dict[str, list[RunRecord]], gate: str) -> list[int]:
    """Of each seed the updates to the target of its run."""
    found = []
    for run in runs[gate]:
        target = run.options["training"]["target"]
        assert run.record is not None
        arrived = updates_to(run.metrics, run.record["metric"], target, run.record["lower_is_better"])
        if arrived is None:
            raise ValueError(f"{run.folder} did not reach its target: the sentence needs other words")
        found.append(arrived)
    return found


def _firsts(ours: list[int], others: list[int]) -> str:
    wins = sum(fast < sigmoid for fast, sigmoid in zip(ours, others, strict=True))
    return f"first with {wins} of {len(ours)} seeds (sign test, p = {binomtest(wins, len(ours)).pvalue:.2f})"


def _spread(values: list[int]) -> str:
    if len(values) == 1:
        return f"{values[0]:,}"
    return f"{statistics.mean(values):,.0f} ± {statistics.stdev(values):,.0f}"


def _ratio(measured: dict[str, Any] | None) -> str:
    return "not measured" if measured is None else f"{measured['median']:.2f}"


def main() -> None:
    README.write_text(with_blocks(README.read_text()))
    FIGURE.write_bytes(figure())


if __name__ == "__main__":
    main()
