"""The monitor: the numbers it records, when it records them, and that training does not notice."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gatedrnn.lab.models import Model, Sizes
from gatedrnn.lab.tasks import Adding, Batch, Samples, Split, Task, Tones
from gatedrnn.lab.training import Run, Training, train
from gatedrnn.lab.training.evaluation import Evaluation
from gatedrnn.lab.training.stability import stability

TRAINING = Training(updates=4, evaluate_every=2, batch_size=6, evaluation_size=5, threads=1)


def _lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("encoder_size", [None, 3])
@pytest.mark.parametrize("cell", ["lstm", "gru", "nru"])
def test_the_norms_are_those_of_the_gradient_by_the_input_of_the_layer(cell: str, encoder_size: int | None) -> None:
    torch.manual_seed(0)
    task, steps = Tones(50), 50
    network = Model(cell=cell, hidden_size=4, encoder_size=encoder_size, read="mean").build(Sizes(1, 10, 1, 50.0))
    batch = task.batch(6, torch.Generator().manual_seed(1))
    found = stability(network, task, TRAINING, batch)["l0"]["gradient_norms"]

    x = network.encoder(batch.input).detach().requires_grad_()
    output, _ = network.layer(x)
    loss = torch.nn.functional.cross_entropy(network.head(output.mean(0)), batch.target[0])
    (gradient,) = torch.autograd.grad(loss, x)
    ends = [steps // 16 * i + min(i, steps % 16) for i in range(17)]  # the first parts have one step more
    expected = [gradient[a:b].norm().item() for a, b in itertools.pairwise(ends)]
    assert found == pytest.approx(expected, rel=1e-4) and len(found) == 16
    assert sum(norm**2 for norm in found) ** 0.5 == pytest.approx(gradient.norm().item(), rel=1e-4)


@pytest.mark.parametrize(("bias", "share"), [(-5.0, 0.0), (20.0, 1.0), ((20.0, -5.0, 20.0, 0.0), 0.5)])
def test_the_share_of_saturated_gates(bias: Any, share: float) -> None:
    torch.manual_seed(0)
    network = Model(hidden_size=4, forget_gate="sigmoid").build(Sizes(1, 10, 1, 50.0))
    with torch.no_grad():
        network.layer.bias_ih_l0[:4] = torch.tensor(bias)
    batch = Tones(50).batch(6, torch.Generator().manual_seed(1))
    assert stability(network, Tones(50), TRAINING, batch)["l0"]["saturated"] == share


def test_the_threshold_is_a_ten_thousandth() -> None:
    network = Model(hidden_size=2, forget_gate="sigmoid").build(Sizes(1, 10, 1, 50.0))
    with torch.no_grad():
        network.layer.weight_ih_l0.zero_()
        network.layer.weight_hh_l0.zero_()
        network.layer.bias_ih_l0[:2] = torch.special.logit(torch.tensor([1 - 0.9e-4, 1 - 1.1e-4]))
    batch = Tones(50).batch(6, torch.Generator().manual_seed(1))
    assert stability(network, Tones(50), TRAINING, batch)["l0"]["saturated"] == 0.5


def test_every_layer_of_a_stack_and_rows_of_different_lengths() -> None:
    torch.manual_seed(0)
    network = Model(hidden_size=4, num_layers=2).build(Sizes(1, 10, 1, 50.0))
    with torch.no_grad():
        network.layer.bias_ih_l1[:4] = 20.0
    batch = Tones(32).batch(2, torch.Generator().manual_seed(1))
    ragged = Batch(batch.input, batch.target, torch.tensor([32, 8]))
    found = stability(network, Tones(32), TRAINING, ragged)
    assert set(found) == {"l0", "l1"} and set(found["l1"]) == {"saturated"}
    assert found["l1"]["saturated"] == 1.0 and found["l0"]["saturated"] == 0.0
    alone = stability(network, Tones(32), TRAINING, Batch(batch.input[:, :1], batch.target[:, :1]))
    # The second row ends after 8 of 32 steps: past them, the gradient is that of the first row, of two.
    expected = [norm / 2 for norm in alone["l0"]["gradient_norms"][4:]]
    assert found["l0"]["gradient_norms"][4:] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("encoder_size", [None, 3])
def test_under_autocast_gates_are_measured_in_float32(encoder_size: int | None) -> None:
    """In bfloat16, 1−f is 0 for each of these gates."""
    training = dataclasses.replace(TRAINING, autocast="bfloat16")
    network = Model(hidden_size=2, encoder_size=encoder_size, read="mean").build(Sizes(1, 10, 1, 50.0))
    with torch.no_grad():
        network.layer.weight_ih_l0.zero_()
        network.layer.weight_hh_l0.zero_()
        network.layer.bias_ih_l0[:2] = network.layer.forget_gate.inverse(torch.tensor([1 - 0.9e-4, 1 - 1.1e-4]))
        network.layer.weight_ih_l0[2:] = 0.5  # of the other gates, so that there is a gradient
    found = stability(network, Tones(50), training, Tones(50).batch(6, torch.Generator().manual_seed(1)))["l0"]
    assert found["saturated"] == 0.5 and all(found["gradient_norms"])


def test_a_run_with_an_encoder_under_autocast(tmp_path: Path) -> None:
    run = Run(
        Tones(20),
        Model(hidden_size=4, encoder_size=4, read="mean"),
        dataclasses.replace(TRAINING, updates=1, autocast="bfloat16"),
    )
    train(run, tmp_path / "run")
    for line in _lines(tmp_path / "run"):
        assert all(line["stability"]["l0"]["gradient_norms"]) and 0 <= line["stability"]["l0"]["saturated"] <= 1


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("rows_at_once", [1, 4])
def test_a_batch_in_pieces_has_the_numbers_of_the_batch(
    rows_at_once: int, ragged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = Model(hidden_size=4, num_layers=2, forget_gate="sigmoid").build(Sizes(1, 10, 1, 50.0))
    with torch.no_grad():
        network.layer.bias_ih_l0[:4] = 9.2  # 1−f is 1e-4: some of the gates are below
    batch = Tones(32).batch(6, torch.Generator().manual_seed(1))
    if ragged:
        batch = dataclasses.replace(batch, lengths=torch.tensor([32, 8, 9, 30, 1, 20]))
    whole = stability(network, Tones(32), TRAINING, batch)
    assert 0 < whole["l0"]["saturated"] < 1

    at_once, forward = [], type(network).forward

    def counted(self: Any, x: torch.Tensor, *rest: Any) -> Any:
        at_once.append(x.shape[1])
        return forward(self, x, *rest)

    monkeypatch.setattr(type(network), "forward", counted)
    monkeypatch.setattr("gatedrnn.lab.training.stability._MOST_VALUES", rows_at_once * 32 * 4)
    found = stability(network, Tones(32), TRAINING, batch)
    assert at_once == {1: [1] * 6, 4: [4, 2]}[rows_at_once]
    assert found["l0"]["gradient_norms"] == pytest.approx(whole["l0"]["gradient_norms"], rel=1e-5)
    assert [found[key]["saturated"] for key in ("l0", "l1")] == [whole[key]["saturated"] for key in ("l0", "l1")]


def test_as_many_sequences_as_a_training_batch_from_all_over_the_batch() -> None:
    torch.manual_seed(0)
    network = Model(hidden_size=4).build(Sizes(1, 10, 1, 50.0))
    batch = Tones(32).batch(60, torch.Generator().manual_seed(1))
    expected = Batch(batch.input[:, ::10], batch.target[:, ::10])
    assert stability(network, Tones(32), TRAINING, batch) == stability(network, Tones(32), TRAINING, expected)


@dataclasses.dataclass(frozen=True)
class Sorted(Tones):
    """Validation data sorted by tone, as that of speech is by word: 60 of each."""

    name = "sorted"

    def splits(self, size: int | None) -> dict[str, Split]:
        def take(numbers: torch.Tensor) -> Batch:
            return Batch(torch.zeros(self.length, len(numbers), 1), numbers.div(60, rounding_mode="floor")[None])

        return {"validation": Samples(600, take)}


@pytest.mark.parametrize("hidden_size", [4, 256])
def test_every_class_of_a_sorted_split_is_seen(hidden_size: int) -> None:
    task, training = Sorted(16_000), dataclasses.replace(TRAINING, batch_size=50)
    network = Model(hidden_size=hidden_size, read="mean").build(Sizes(1, 10, 1, 16_000.0))
    batch = Evaluation(task, training).sample("validation", network)
    counts = torch.bincount(batch.target[0], minlength=10)
    assert counts.min() >= 5 and counts.max() - counts.min() <= 1


def test_a_part_without_a_step_has_no_gradient() -> None:
    network = Model(hidden_size=4).build(Sizes(1, 10, 1, 50.0))
    norms = stability(network, Tones(5), TRAINING, Tones(5).batch(2, torch.Generator()))["l0"]["gradient_norms"]
    assert len(norms) == 16 and all(norms[:5]) and not any(norms[5:])


@pytest.mark.parametrize(("task", "monitor", "recorded"), [(Tones(20), None, True), (Tones(20), False, False)])
@pytest.mark.parametrize("cell", ["lstm", "nru"])
def test_when_it_is_recorded(task: Task, monitor: bool | None, recorded: bool, cell: str, tmp_path: Path) -> None:
    run = Run(task, Model(cell=cell, hidden_size=4), dataclasses.replace(TRAINING, monitor=monitor))
    train(run, tmp_path / "run")
    lines = _lines(tmp_path / "run")
    assert len(lines) == 3 and [("stability" in line) for line in lines] == [recorded] * 3


def test_training_does_not_notice(tmp_path: Path) -> None:
    results = []
    for monitor in (None, True):
        run = Run(Adding(20), Model(hidden_size=4), dataclasses.replace(TRAINING, monitor=monitor))
        train(run, tmp_path / f"{monitor}")
        lines = _lines(tmp_path / f"{monitor}")
        assert all(("stability" in line) == bool(monitor) for line in lines)
        results.append(
            (run.key(), [{k: v for k, v in line.items() if k not in ("stability", "seconds")} for line in lines])
        )
    assert results[0] == results[1]
