"""Words per second of the language model and of the same model on torch.nn.LSTM. Takes minutes, on an idle machine:

python benchmarks/language.py
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gatedrnn.lab.models import LanguageModel, LanguageNetwork, Sizes

VOCABULARY, STEPS, ROWS = 10_000, 70, 20
ROUNDS, TURN = 15, 0.5  # seconds
SIZES = {"desk, 200-400-400-200": (200, 400), "paper, 400-1150-1150-400": (400, 1150)}
GATES = ("sigmoid", "refine", "fast")


def on_torch(network: LanguageNetwork) -> LanguageNetwork:
    """The same model with torch.nn.LSTM in place of the layers, and the DropConnect on their weights."""

    class Layer(nn.Module):
        def __init__(self, like: nn.Module) -> None:
            super().__init__()
            self.rnn = nn.LSTM(like.input_size, like.hidden_size)  # type: ignore[arg-type]
            self.drop = like.weight_dropout

        def forward(self, x: Tensor, state: object = None, lengths: None = None) -> object:
            weight = F.dropout(self.rnn.weight_hh_l0, self.drop, self.training)  # type: ignore[arg-type]
            return torch.func.functional_call(self.rnn, {"weight_hh_l0": weight}, (x, state))

    network.rnns = nn.ModuleList(Layer(layer) for layer in network.rnns)
    return network


def whole_model(network: LanguageNetwork) -> Callable[[], None]:
    """One training step, without the optimiser."""
    words = torch.randint(VOCABULARY, (STEPS + 1, ROWS))
    state = network(words[:-1]).carry

    def step() -> None:
        result = network(words[:-1], tuple(part.detach() for part in state))
        assert result.penalty is not None
        (F.cross_entropy(result.output.flatten(0, 1), words[1:].flatten()) + result.penalty).backward()
        network.zero_grad()

    return step


def layers_alone(network: LanguageNetwork) -> Callable[[], None]:
    """The recurrent layers, one on the other, forward and backward, with their DropConnect."""
    x = torch.randn(STEPS, ROWS, network.options.embedding_size)

    def step() -> None:
        output = x.requires_grad_()
        for layer in network.rnns:
            output, _ = layer(output)
        output.sum().backward()
        network.zero_grad()
        x.grad = None

    return step


def seconds(steps: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Seconds per step in each round. Every round times all models, so that a disturbance affects all; each runs
    several steps at a time, as in training, after one that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for name in steps:
        steps[name]()
    for _, (name, step) in itertools.product(range(ROUNDS), steps.items()):
        step()
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < TURN:
            step()
            count += 1
        found[name].append((time.perf_counter() - begin) / count)
    return found


def main() -> None:
    for title, (embedding, hidden) in SIZES.items():
        for what, make in (("whole model", whole_model), ("layers alone", layers_alone)):
            steps = {}
            for name in (*GATES, "torch.nn"):
                torch.manual_seed(0)
                gate = "sigmoid" if name == "torch.nn" else name
                model = LanguageModel(embedding_size=embedding, hidden_size=hidden, forget_gate=gate)
                network = model.build(Sizes(VOCABULARY, VOCABULARY, None, float(STEPS)))
                steps[name] = make(on_torch(network) if name == "torch.nn" else network)
            times = seconds(steps)
            print(f"{title}, {what}, {torch.get_num_threads()} threads")
            for name, own in times.items():
                ratios = [theirs / ours for theirs, ours in zip(times["torch.nn"], own, strict=True)]
                speed = STEPS * ROWS / statistics.median(own)
                low, middle, high = statistics.quantiles(ratios, n=4)
                print(f"  {name:9} {speed:9.0f} words/s   {middle:.2f} times torch.nn's ({low:.2f} to {high:.2f})")
            for one, other in (("fast", "sigmoid"), ("refine", "fast")):
                factor = statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))
                print(f"  time of {one} / {other}: {factor:.2f}")


if __name__ == "__main__":
    main()
