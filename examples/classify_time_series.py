"""Classify real time series: which appliance drew this current? The fast gate and Chrono beside torch.nn.LSTM.

It needs the laboratory (.[lab]). Without --data it runs on a small synthetic set in seconds. The real set, PLAID, is in
the wheel of the package sktime:

pip download --no-deps sktime==1.2.0 && python -m zipfile -e sktime-1.2.0-py3-none-any.whl sktime-wheel
python examples/classify_time_series.py --data sktime-wheel/sktime/datasets/data/PLAID --out plaid.json
"""

import argparse
import copy
import hashlib
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

import gatedrnn
from gatedrnn.inits import Chrono
from gatedrnn.lab.records import read_json, write_json

# The recurrent layer of each model, made from the channels of the input, the units, and t, the longest memory expected.
MODELS: dict[str, Callable[[int, int, float], nn.Module]] = {
    "fast, Chrono": lambda c, h, t: gatedrnn.LSTM(c, h, tied=True, forget_gate="fast", forget_init=Chrono(t)),
    "sigmoid, Chrono": lambda c, h, t: gatedrnn.LSTM(c, h, tied=True, forget_init=Chrono(t)),
    "sigmoid, bias 1": lambda c, h, t: gatedrnn.LSTM(c, h, tied=True, forget_init="constant"),
    "torch.nn.LSTM": lambda c, h, t: nn.LSTM(c, h),
}


@dataclass(frozen=True)
class Settings:
    """The same for all models."""

    hidden_size: int = 32
    lr: float = 1e-2
    batch_size: int = 32
    epochs: int = 50
    clip: float = 1.0
    validation: float = 0.2


@dataclass(frozen=True)
class Part:
    """Series of shape (steps, channels) and the number of the class of each."""

    series: list[Tensor]
    classes: Tensor

    def take(self, chosen: Sequence[int]) -> "Part":
        return Part([self.series[i] for i in chosen], self.classes[list(chosen)])

    def batches(self, size: int) -> Iterator["Part"]:
        for chosen in torch.randperm(len(self.series)).split(size):
            yield self.take(chosen.tolist())


class Classifier(nn.Module):
    """A head on the output at the last step of each series."""

    def __init__(self, rnn: nn.Module, hidden_size: int, classes: int) -> None:
        super().__init__()
        self.rnn = rnn
        self.head = nn.Linear(hidden_size, classes)

    def forward(self, series: list[Tensor]) -> Tensor:
        lengths = torch.tensor([len(one) for one in series])
        # The last step of a series does not depend on the padding after it; with lengths= no time is spent on that.
        spared = {} if isinstance(self.rnn, nn.LSTM) else {"lengths": lengths}
        output, _ = self.rnn(pad_sequence(series), **spared)
        return torch.as_tensor(self.head(output[lengths - 1, torch.arange(len(series))]))

    @torch.no_grad()
    def accuracy(self, part: Part) -> float:
        return float((self(part.series).argmax(1) == part.classes).float().mean())


def read_ts(path: Path) -> tuple[list[Tensor], list[str]]:
    """The series and labels of a .ts file. A line is `channel:…:label`, a channel `value,value,…`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = next((n for n, line in enumerate(lines, 1) if line.strip().lower() == "@data"), len(lines))
    if begin == len(lines):
        raise ValueError(f"{path}: no series, there is nothing after a line @data")
    series, labels = [], []
    for number, line in enumerate(lines[begin:], begin + 1):
        *channels, label = line.split(":")
        if len(channels) != lines[begin].count(":") or not channels or not label.strip():
            raise ValueError(f"{path}, line {number}: not as many channels as in the first series, or no class label")
        try:
            values = torch.tensor([[float(value) for value in channel.split(",")] for channel in channels])
        except ValueError as wrong:
            raise ValueError(f"{path}, line {number}: {wrong}") from None
        if not values.isfinite().all():
            raise ValueError(f"{path}, line {number}: missing and infinite values are not supported")
        series.append(values.T)
        labels.append(label.strip())
    return series, labels


def read_folder(folder: Path) -> tuple[Part, Part, dict[str, str]]:
    """Train and test part of the data set in this folder, and the checksums of its files."""
    found = sorted(folder.glob("*_TRAIN.ts"))
    if len(found) != 1:
        raise ValueError(f"{folder}: expected one file NAME_TRAIN.ts beside NAME_TEST.ts, found {len(found)}")
    paths = [found[0], folder / found[0].name.replace("_TRAIN", "_TEST")]
    (train, train_labels), (test, test_labels) = (read_ts(path) for path in paths)
    names = sorted(set(train_labels))
    if unknown := set(test_labels) - set(names):
        raise ValueError(f"{paths[1]}: classes that {paths[0].name} does not have: {', '.join(sorted(unknown))}")
    if test[0].size(1) != train[0].size(1):
        raise ValueError(f"{paths[1]}: {test[0].size(1)} channels, {paths[0].name} has {train[0].size(1)}")
    parts = [
        Part(series, torch.tensor([names.index(label) for label in labels]))
        for series, labels in ((train, train_labels), (test, test_labels))
    ]
    return parts[0], parts[1], {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def made_up() -> tuple[Part, Part, dict[str, str]]:
    """Noise of 20 to 60 steps; the class is the size of its first value."""
    generator = torch.Generator().manual_seed(0)
    classes = torch.arange(80) % 3
    series = [torch.randn(20 + i % 41, 1, generator=generator) for i in range(80)]
    for one, number in zip(series, classes.tolist(), strict=True):
        one[0] = 10.0**number
    everything = Part(series, classes)
    return everything.take(range(60)), everything.take(range(60, 80)), {}


def scaled(train: Part, *others: Part) -> list[Part]:
    """Values over several orders of magnitude brought near 1; all numbers for it are those of the train part."""
    values = torch.cat(train.series)
    unit = values.abs().median(0).values.clamp_min(1e-30)
    mean, std = (values / unit).asinh().mean(0), (values / unit).asinh().std(0)
    return [
        Part([((one / unit).asinh() - mean) / std for one in part.series], part.classes) for part in (train, *others)
    ]


def split(train: Part, share: float) -> tuple[Part, Part]:
    """The train part without a random share of each class, and that share."""
    order = torch.randperm(len(train.series))
    chosen: list[int] = []
    for number in train.classes.unique():
        members = order[train.classes[order] == number].tolist()
        chosen += members[: round(share * len(members))]
    return train.take([i for i in order.tolist() if i not in set(chosen)]), train.take(chosen)


def run(name: str, seed: int, train: Part, test: Part, settings: Settings) -> dict[str, Any]:
    """Train one model. Validation chooses the epoch; test is looked at once, with the weights of that epoch."""
    torch.manual_seed(seed)  # the split, and below the order of the batches: the same for all models
    fitted, validation = split(train, settings.validation)
    longest = max(len(one) for one in fitted.series)
    fitted, validation, test = scaled(fitted, validation, test)
    state = torch.get_rng_state()
    rnn = MODELS[name](fitted.series[0].size(1), settings.hidden_size, float(longest))
    model = Classifier(rnn, settings.hidden_size, int(train.classes.max()) + 1)
    torch.set_rng_state(state)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    losses: list[float] = []
    accuracies: list[float] = []
    best = copy.deepcopy(model.state_dict())
    for _ in range(settings.epochs):
        total = 0.0
        for batch in fitted.batches(settings.batch_size):
            loss = cross_entropy(model(batch.series), batch.classes)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
            total += loss.item() * len(batch.series)
        losses.append(round(total / len(fitted.series), 4))
        accuracies.append(round(model.accuracy(validation), 4))
        if accuracies[-1] > max(accuracies[:-1], default=-1.0):
            best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return {
        "model": name,
        "seed": seed,
        "epoch": 1 + accuracies.index(max(accuracies)),
        "validation": max(accuracies),
        "test": round(model.accuracy(test), 4),
        "train_losses": losses,
        "validation_accuracies": accuracies,
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Mean ± standard deviation over the seeds of each model."""
    rows = ["| model | seeds | validation accuracy | test accuracy | best epoch |", "| --- | --- | --- | --- | --- |"]
    for name in MODELS:
        of_model = [one for one in runs if one["model"] == name]
        if of_model:
            columns = (("validation", 3), ("test", 3), ("epoch", 0))
            cells = [spread([one[key] for one in of_model], digits) for key, digits in columns]
            rows.append(f"| {name} | {len(of_model)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def spread(values: list[float], digits: int) -> str:
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare four LSTMs on a set of labelled time series.")
    parser.add_argument(
        "--data", type=Path, help="folder with NAME_TRAIN.ts and NAME_TEST.ts (default: a synthetic set)"
    )
    parser.add_argument("--seeds", type=int, help="number of seeds (default: 5, synthetic set: 2)")
    parser.add_argument("--out", type=Path, help="JSON file; run the same command to resume, with more seeds to extend")
    options = parser.parse_args()
    seeds = (5 if options.data else 2) if options.seeds is None else options.seeds
    try:
        if seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {seeds}")
        if options.out and not options.out.parent.is_dir():
            raise ValueError(f"{options.out}: the folder does not exist; create it first")
        train, test, checksums = read_folder(options.data) if options.data else made_up()
        settings = Settings() if options.data else Settings(epochs=4)
        results: dict[str, Any] = {
            "files": checksums,
            "settings": asdict(settings),
            "torch": str(torch.__version__),
            "runs": [],
        }
        if options.out and options.out.exists():
            before = read_json(options.out)
            if {**before, "runs": []} != results:
                raise ValueError(f"{options.out}: made with other data, settings or torch; choose another file")
            results = before
    except (OSError, ValueError) as wrong:
        sys.exit(f"error: {wrong}")
    done = {(one["model"], one["seed"]) for one in results["runs"]}
    for seed in range(seeds):
        for name in MODELS:
            if (name, seed) not in done:
                results["runs"].append(run(name, seed, train, test, settings))
                print(f"{name}, seed {seed}: test accuracy {results['runs'][-1]['test']:.3f}", flush=True)
                if options.out:
                    write_json(options.out, results)
    print(table(results["runs"]))


if __name__ == "__main__":
    main()
