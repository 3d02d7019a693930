"""One loop for text and images: carried state, varying chunks, a regulariser, averaging, epochs, and exact resume."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from gatedrnn.cli.training_progress import summary
from gatedrnn.lab.models import Sizes
from gatedrnn.lab.records import CHECKPOINTS, read_checkpoint, read_run
from gatedrnn.lab.tasks import Adding, Split
from gatedrnn.lab.training import Run, Training, open_trained, train
from gatedrnn.lab.training.evaluation import Evaluation

from .runs import SMALL, StopError, result, stop_at
from .toy import IMAGES, TEXT, ToyImages, ToyText, changed


def _weights(folder: Path, name: str = "weights.safetensors") -> dict[str, torch.Tensor]:
    last = max((folder / CHECKPOINTS).glob("[0-9]*"))
    return safetensors.torch.load(read_checkpoint(last).files[name])


def test_text_is_trained_as_by_hand(tmp_path: Path) -> None:
    """State carried and detached, the learning rate of each chunk, the penalty, the averages after the switch."""
    record = train(TEXT, tmp_path)
    metrics = read_run(tmp_path).metrics
    switch = 5 * next(
        at
        for at in range(2, len(metrics))
        if metrics[at]["perplexity"] > min(m["perplexity"] for m in metrics[: at - 1])
    )
    assert 0 < switch < 55  # both ways of training are seen

    task = ToyText()
    torch.manual_seed(0)
    network = TEXT.model.build(Sizes(5, 5, None, 7.0))
    parameters = [p for p in network.parameters() if p.requires_grad]
    stream, carry, averages = task.stream(4, 2**31), None, [torch.zeros_like(p) for p in parameters]
    for update in range(60):
        batch = stream.next()
        output, carry, _ = network(batch.input, carry if batch.continues else None)
        loss = torch.nn.functional.cross_entropy(output.flatten(0, 1), batch.target.flatten())
        (loss + 0.1 * output.square().mean()).backward()
        carry = tuple(part.detach() for part in carry)
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        for parameter, average in zip(parameters, averages, strict=True):
            parameter.data -= 12.0 * batch.rate * parameter.grad  # type: ignore[operator]
            parameter.grad = None
            # As torch has it: the mean begins with the second of the averaged weights.
            average += (parameter.data - average) / max(1, update - switch)
    for name, trained in _weights(tmp_path).items():
        torch.testing.assert_close(trained, network.state_dict()[name], rtol=1e-4, atol=1e-5)
    for parameter, average in zip(parameters, averages, strict=True):
        parameter.data = average
    measured = Evaluation(task, TEXT.training)("validation", network)
    assert record["final"]["perplexity"] == pytest.approx(measured["perplexity"], rel=1e-4)


def test_the_state_of_a_split_is_carried_and_no_token_counts_more_than_another() -> None:
    task = ToyText()
    torch.manual_seed(0)
    network = TEXT.model.build(Sizes(5, 5, None, 7.0))
    columns = task._columns(task.text[:80], 2)  # 40 steps: chunks of 10, 10, 10 and 9 targets
    with torch.no_grad():
        whole = network(columns[:-1]).output
    expected = torch.nn.functional.cross_entropy(whole.flatten(0, 1), columns[1:].argmax(-1).flatten())
    measured = Evaluation(task, TEXT.training)("validation", network)
    assert measured["loss"] == pytest.approx(float(expected), rel=1e-6)
    assert measured["perplexity"] == pytest.approx(float(expected.exp()), rel=1e-6)


@pytest.mark.parametrize("run", [TEXT, IMAGES], ids=["text", "images"])
def test_resumed_anywhere_to_the_bits(run: Run, tmp_path: Path) -> None:
    train(run, tmp_path / "whole")
    whole = result(tmp_path / "whole")
    updates = whole["record"]["updates"]
    for update in range(1, updates, 6):
        with pytest.raises(StopError):
            train(run, tmp_path / "parts", stop_at(update))
    train(run, tmp_path / "parts")
    assert result(tmp_path / "parts") == whole


def test_an_epoch_shows_every_sample_once_in_a_new_order() -> None:
    stream = ToyImages().stream(8, 1)
    assert stream.updates_an_epoch == 9
    epochs = [torch.cat([stream.next().input for _ in range(9)], dim=1) for _ in range(2)]
    for epoch in epochs:
        assert epoch.shape[1] == 70
        rows = {tuple(row) for row in epoch[..., 0].t().tolist()}
        assert rows == {tuple(row) for row in ToyImages().rows[:70, :, 0].tolist()}
    assert not torch.equal(*epochs)


@pytest.mark.parametrize("batches", [0, 4, 8, 9, 13])
def test_a_position_in_an_epoch_is_exact(batches: int) -> None:
    stream = ToyImages().stream(8, 1)
    for _ in range(batches):
        stream.next()
    position = {name: tensor.clone() for name, tensor in stream.position().items()}
    expected = [stream.next().input for _ in range(15)]
    other = ToyImages().stream(8, 2)
    other.next()
    other.seek(position)
    assert all(torch.equal(other.next().input, x) for x in expected)


def test_what_a_run_with_a_test_split_leaves(tmp_path: Path) -> None:
    record = train(IMAGES, tmp_path)
    metrics = read_run(tmp_path).metrics
    assert [line["update"] for line in metrics] == [0, 9, 18, 27, 36, 45]
    assert [line["epoch"] for line in metrics] == [0, 1, 2, 3, 4, 5]
    best = max(metrics, key=lambda line: line["accuracy"])
    assert best["update"] < 45  # the last weights are not the best ones
    shown = {name: best[name] for name in ("update", "loss", "accuracy", "epoch")}
    assert record["validation"] == shown and record["epochs"] == 5
    assert record["seconds_an_epoch"] == pytest.approx(record["seconds"] / 5)

    network = IMAGES.model.build(Sizes(1, 2, 1, 6.0))
    network.load_state_dict(_weights(tmp_path, "best.safetensors"))
    evaluation = Evaluation(IMAGES.task, IMAGES.training)
    assert evaluation("validation", network)["loss"] == best["loss"]
    assert evaluation("test", network) == record["test"]
    network.load_state_dict(_weights(tmp_path))
    assert evaluation("test", network) != record["test"]


def test_the_test_split_is_looked_at_once_and_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    call = Evaluation.__call__

    def noted(self: Evaluation, split: str, network: Any) -> dict[str, float]:
        asked.append(split)
        return call(self, split, network)

    monkeypatch.setattr(Evaluation, "__call__", noted)
    train(IMAGES, tmp_path)
    assert asked == ["validation"] * 6 + ["test"]


def test_stopping_early(tmp_path: Path) -> None:
    train(IMAGES, tmp_path / "whole")
    curve = [line["accuracy"] for line in read_run(tmp_path / "whole").metrics]
    record = train(changed(IMAGES, stop_patience=1), tmp_path / "early")
    expected = next(at for at in range(1, len(curve)) if curve[at] <= max(curve[:at]))
    assert (record["outcome"], record["epochs"]) == ("stopped_early", expected)
    assert record["validation"]["accuracy"] == max(curve[: expected + 1])


def test_a_diverged_run_is_tested_with_its_best_weights(tmp_path: Path) -> None:
    run = changed(IMAGES, optimizer="sgd", alpha=None, eps=None, momentum=None, lr=1e20, weight_decay=1e10, clip=None)
    record = train(run, tmp_path)
    assert record["outcome"] == "diverged" and record["validation"]["update"] == 0
    assert record["test"]["loss"] > 0


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (dataclasses.replace(TEXT, training=dataclasses.replace(TEXT.training, evaluation_size=5)),
         "^evaluation_size is for tasks that draw fresh batches; toy_text has a validation set, got 5$"),
        (changed(Run(), updates=None, evaluate_every=None, epochs=3),
         "^epochs is for tasks with a training set; adding draws fresh batches: give updates$"),
        (changed(IMAGES, updates=5), "^updates cannot be combined with epochs, got updates = 5$"),
        (changed(IMAGES, average_patience=5), "^average_patience is for the optimizer sgd, not for rmsprop$"),
        (changed(TEXT, momentum=0.5), "^momentum must be 0 where weights are averaged"),
        (changed(TEXT, stop_patience=0), "^stop_patience must be between 1 and 1000000000, got 0$"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(run: Run, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run.check()


@dataclass(frozen=True)
class AddingWithTest(Adding):
    """Fresh batches, and a test split."""

    def splits(self, size: int | None) -> Mapping[str, Split]:
        splits = super().splits(size)
        return {**splits, "test": splits["validation"]}


def test_fresh_batches_and_a_test_split(tmp_path: Path) -> None:
    run = dataclasses.replace(SMALL, task=AddingWithTest(10))
    record = train(run, tmp_path)
    assert record["validation"] == {**record["best"], "epoch": None}
    assert record["test"]["mse"] == record["best"]["mse"]  # the same sequences, with the same weights
    assert f"at update {record['best']['update']}, test mse" in summary(record, tmp_path)
    assert train(run, tmp_path) == record  # complete: nothing is written again


def test_what_was_evaluated_is_recorded_and_kept_where_weights_are_averaged(tmp_path: Path) -> None:
    """A task without a test split: the record and the file for later use have the averages, not the last iterate."""
    training = Training(
        optimizer="sgd", lr=0.3, average_patience=1, updates=60, evaluate_every=5, batch_size=8, evaluation_size=20,
        checkpoint_seconds=0.0, threads=1,
    )  # fmt: skip
    run = dataclasses.replace(SMALL, training=training)
    record = train(run, tmp_path)
    values = [line["mse"] for line in read_run(tmp_path).metrics]
    assert any(values[at] > min(values[: at - 1]) for at in range(2, len(values) - 1))  # it averages
    trained = open_trained(tmp_path)
    found = Evaluation(trained.run.task, trained.run.training)("validation", trained.network)
    assert found["mse"] == pytest.approx(values[-1], rel=1e-6)
    assert trained.update == 60 and record["time_scales"] == read_run(tmp_path).metrics[-1]["time_scales"]
    last = tmp_path / CHECKPOINTS / "00000060"
    assert (last / "averages.safetensors").read_bytes() != (last / "weights.safetensors").read_bytes()
