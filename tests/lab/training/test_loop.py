"""The loop: what it computes, when it ends, and what it leaves."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from gatedrnn.lab.models import Model, Sizes, load
from gatedrnn.lab.records import read_run
from gatedrnn.lab.tasks import Adding, Copy
from gatedrnn.lab.training import OPTIMIZERS, Run, Status, Training, train
from gatedrnn.lab.training.evaluation import Evaluation

from .runs import SMALL, changed, result, valid_json

HAND_WRITTEN: dict[str, Any] = {
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, alpha=0.99, eps=1e-8),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_weights_are_those_of_updates_written_by_hand(optimizer: str, tmp_path: Path) -> None:
    run = Run(
        Copy(5),
        Model(hidden_size=8),
        Training(optimizer=optimizer, updates=4, batch_size=6, evaluation_size=5, clip=0.1, seed=3, threads=1),
    )
    record = train(run, tmp_path)

    torch.manual_seed(3)
    network = run.model.build(Sizes(10, 10, 10, t_max=7.5))
    parameters = [p for p in network.parameters() if p.requires_grad]
    updates = HAND_WRITTEN[optimizer](parameters)
    batches = torch.Generator().manual_seed(2**31 + 3)
    losses, norms = [], []
    for _ in range(4):
        batch = run.task.batch(6, batches)  # type: ignore[attr-defined]
        loss = run.task.loss(network(batch.input).output, batch.target)
        updates.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(parameters, 0.1)))
        updates.step()
        losses.append(loss.item())

    trained, _ = load(max((tmp_path / "checkpoints").iterdir()) / "weights.safetensors")
    for name, weight in network.state_dict().items():
        torch.testing.assert_close(trained.state_dict()[name], weight, rtol=1e-6, atol=1e-7)
    last = read_run(tmp_path).metrics[-1]
    assert last["train_loss"] == pytest.approx(sum(losses) / 4)
    assert last["gradient_norm"] == pytest.approx(sum(norms) / 4)
    assert record["parameters"] == sum(p.numel() for p in parameters)


def test_what_a_run_leaves(tmp_path: Path) -> None:
    record = train(SMALL, tmp_path)
    found = read_run(tmp_path)
    assert found.record == json.loads(json.dumps(record))
    assert found.options == SMALL.as_json()
    assert found.environment is not None and found.environment["torch"] == torch.__version__
    assert "native" in found.environment["engine"] or "reference" in found.environment["engine"]
    assert [line["update"] for line in found.metrics] == [0, 10, 20, 30]
    assert found.metrics[0]["train_loss"] is None and found.metrics[0]["seconds"] == 0
    assert record["outcome"] == "finished" and record["updates"] == 30 and record["diverged_at"] is None
    assert record["final"] == {name: found.metrics[-1][name] for name in ("update", "loss", "mse")}
    assert record["best"]["mse"] == min(line["mse"] for line in found.metrics)
    assert record["metric"] == "mse" and record["lower_is_better"] is True
    assert set(record["gates"]["l0"]) == {"forget", "input", "output"}
    assert record["time_scales"] == found.metrics[-1]["time_scales"]
    measured = record["measured_time_scales"]["l0"]
    assert set(measured) == {"mean", "std", "quantiles", "steps"}
    assert 0 < measured["steps"]["0.05"] <= measured["steps"]["0.5"] <= measured["steps"]["0.95"]
    assert record["key"] == SMALL.key()
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


def test_a_task_without_validation_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Adding, "splits", lambda self, size: {"test": None})
    with pytest.raises(ValueError, match="the splits of the task adding must include 'validation', got test"):
        train(SMALL, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_evaluation_set_is_the_same_for_every_seed_and_is_evaluated_in_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (Evaluation(SMALL.task, changed(seed=seed).training) for seed in (0, 1))
    network = SMALL.model.build(Sizes(2, 1, 1, 10.0))
    batch = first.sample("validation", network)
    assert torch.equal(batch.input, second.sample("validation", network).input)
    assert batch.input.shape == (10, 20, 2) and not first.has_test
    whole = first("validation", network)
    # 20 sequences in parts of 3: the last part has 2, and no part counts more than another.
    monkeypatch.setattr("gatedrnn.lab.training.evaluation._MOST_VALUES", 3 * 10 * 8)
    assert first("validation", network) == pytest.approx(whole, rel=1e-6)
    with torch.no_grad():
        assert whole["mse"] == pytest.approx(float(torch.mean((network(batch.input).output - batch.target) ** 2)))


def test_two_runs_are_equal_to_the_bit_and_another_seed_is_not(tmp_path: Path) -> None:
    for name, run in (("a", SMALL), ("b", SMALL), ("c", changed(seed=1))):
        train(run, tmp_path / name)
    assert result(tmp_path / "a") == result(tmp_path / "b")
    assert result(tmp_path / "a")["weights"] != result(tmp_path / "c")["weights"]


@pytest.mark.parametrize(
    ("options", "at", "updates"),
    [
        ({"lr": 1e20, "clip": None}, 2, 1),  # the second batch shows it
        ({"lr": 1e20, "clip": None, "evaluate_every": 1}, 1, 1),  # the first evaluation shows it
    ],
)
def test_divergence_is_an_outcome(options: dict[str, Any], at: int, updates: int, tmp_path: Path) -> None:
    run = changed(optimizer="sgd", alpha=None, eps=None, **options)
    record = train(run, tmp_path)
    assert (record["outcome"], record["diverged_at"], record["updates"]) == ("diverged", at, updates)
    assert record["best"]["update"] == 0
    valid_json(tmp_path / "metrics.jsonl")
    assert train(run, tmp_path) == record


def test_a_metric_that_overflows_where_the_loss_does_not_is_no_divergence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the perplexity, exp(loss), of a language model whose loss is above 710."""
    curve = [line["mse"] for line in (train(SMALL, tmp_path / "usual"), read_run(tmp_path / "usual"))[1].metrics]
    begun = curve[0]
    monkeypatch.setattr(
        Adding, "summary", lambda self, means: {**means, "mse": math.inf if means["mse"] == begun else means["mse"]}
    )
    record = train(changed(target=-1.0), tmp_path / "overflows")
    assert (record["outcome"], record["updates"]) == ("finished", SMALL.training.updates)
    metrics = read_run(tmp_path / "overflows").metrics
    assert [line["mse"] for line in metrics] == [None, *curve[1:]]
    assert [line["loss"] for line in metrics] == curve
    assert record["best"]["mse"] == min(curve[1:])

    monkeypatch.setattr(Adding, "summary", lambda self, means: {**means, "mse": math.nan})
    record = train(SMALL, tmp_path / "never")
    assert (record["outcome"], record["best"]["mse"], record["final"]["mse"]) == ("finished", None, None)
    assert train(SMALL, tmp_path / "never") == record


def test_a_gradient_whose_squares_overflow_is_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = changed(optimizer="sgd", alpha=None, eps=None, lr=0.1, clip=1e-3)
    train(run, tmp_path / "usual")
    loss, factor = Adding.loss, 2.0**75
    monkeypatch.setattr(Adding, "loss", lambda self, output, target: loss(self, output, target) * factor)
    assert train(run, tmp_path / "overflows")["outcome"] == "finished"
    usual, overflows = (read_run(tmp_path / name).metrics for name in ("usual", "overflows"))
    assert overflows[-1]["gradient_norm"] == pytest.approx(usual[-1]["gradient_norm"] * factor, rel=1e-5)
    assert overflows[-1]["gradient_norm"] > 1e20  # a square of it is above 3.4e38
    assert [line["mse"] for line in overflows] == pytest.approx([line["mse"] for line in usual], rel=1e-6)
    assert usual[-1]["mse"] < 0.999 * usual[0]["mse"]


def test_a_batch_that_is_not_finite_changes_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adding, "loss", lambda self, output, target: (output - target).square().mean() * math.nan)
    monkeypatch.setattr(Adding, "measure", lambda self, output, target: dict.fromkeys(("loss", "mse"), output))
    assert train(SMALL, tmp_path)["diverged_at"] == 1
    trained, _ = load(tmp_path / "checkpoints" / "00000000" / "weights.safetensors")
    torch.manual_seed(0)
    begun = SMALL.model.build(Sizes(2, 1, 1, 10.0))
    assert all(torch.equal(a, b) for a, b in zip(trained.parameters(), begun.parameters(), strict=True))


def test_a_target_ends_the_run(tmp_path: Path) -> None:
    curve = [line["mse"] for line in (train(SMALL, tmp_path / "all"), read_run(tmp_path / "all"))[1].metrics]
    at = next(i for i in range(1, 4) if curve[i] < curve[0])
    record = train(changed(target=curve[at]), tmp_path / "target")
    assert (record["outcome"], record["updates"]) == ("target_reached", 10 * at)
    assert [line["mse"] for line in read_run(tmp_path / "target").metrics] == curve[: at + 1]


def test_a_metric_of_which_more_is_better(tmp_path: Path) -> None:
    run = Run(Copy(5), SMALL.model, changed(target=0.0).training)
    record = train(run, tmp_path)
    assert (record["outcome"], record["updates"], record["metric"]) == ("target_reached", 0, "accuracy")
    assert record["lower_is_better"] is False


def test_a_budget_ends_the_run_with_an_evaluation(tmp_path: Path) -> None:
    record = train(changed(budget_seconds=0.2, updates=10**6, evaluate_every=10**6, checkpoint_seconds=60.0), tmp_path)
    assert record["outcome"] == "budget_spent"
    assert 0.2 <= record["seconds"] + record["seconds_evaluation"] < 2
    assert record["final"]["update"] == record["updates"] > 1


def test_time_is_measured_without_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Adding.measure

    def slow(self: Adding, output: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        time.sleep(0.3)
        return measure(self, output, target)

    monkeypatch.setattr(Adding, "measure", slow)
    record = train(changed(updates=2, evaluate_every=1), tmp_path)
    assert record["seconds_evaluation"] >= 0.9 > 0.3 > record["seconds"] > 0
    assert record["updates_a_second"] == 2 / record["seconds"]


def test_nothing_global_is_left_changed(tmp_path: Path) -> None:
    torch.manual_seed(11)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    record = train(changed(threads=2), tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert record["threads"] == 2


def test_the_threads_of_the_process_are_the_default(tmp_path: Path) -> None:
    train(changed(threads=None), tmp_path)
    assert read_run(tmp_path).options["training"]["threads"] == torch.get_num_threads()


def test_schedules_change_the_learning_rate(tmp_path: Path) -> None:
    train(changed(schedule="steps", decay=0.5, decay_at=(10, 20)), tmp_path)
    assert [line["lr"] for line in read_run(tmp_path).metrics] == [1e-3, 1e-3, 5e-4, 2.5e-4]


def test_progress_says_how_far_the_run_is(tmp_path: Path) -> None:
    said: list[Status] = []
    train(SMALL, tmp_path, said.append)
    assert [status.update for status in said if status.evaluated] == [0, 10, 20, 30]
    assert [status.update for status in said] == list(range(31))
    assert said[0].loss is None and said[0].seconds_left is None
    assert said[-1].seconds_left == 0 and said[-1].loss is not None and said[-1].updates == 30
    assert said[15].metrics == said[10].metrics and said[15].updates_a_second is not None


def test_mixed_precision_computes_otherwise(tmp_path: Path) -> None:
    plain, mixed = (train(changed(autocast=kind), tmp_path / str(kind)) for kind in (None, "bfloat16"))
    assert plain["final"]["mse"] != mixed["final"]["mse"]
    assert plain["final"]["mse"] == pytest.approx(mixed["final"]["mse"], rel=0.1)


def test_a_cell_without_a_forget_gate(tmp_path: Path) -> None:
    record = train(Run(SMALL.task, Model(cell="nru", hidden_size=8), SMALL.training), tmp_path)
    assert record["outcome"] == "finished"
    assert not {"time_scales", "measured_time_scales", "gates"} & set(record)
    assert "time_scales" not in read_run(tmp_path).metrics[0]


def test_an_engine_that_cannot_serve_is_said_before_anything_is_written(tmp_path: Path) -> None:
    run = Run(SMALL.task, Model(hidden_size=8, engine="graph"), SMALL.training)
    with pytest.raises(ValueError, match="^engine must be one that can run this, got 'graph'"):
        train(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_default_dtype_is_refused(tmp_path: Path) -> None:
    """Its results would be others, under the same key."""
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(ValueError, match="^training needs torch's default dtype float32, got float64: call torch"):
            train(SMALL, tmp_path / "out")
    finally:
        torch.set_default_dtype(torch.float32)
    assert not (tmp_path / "out").exists()


def test_progress_that_nobody_reads_ends_the_run_with_a_checkpoint(tmp_path: Path) -> None:
    def closed(status: Status) -> None:
        if status.update >= 7:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        train(changed(checkpoint_seconds=60.0), tmp_path / "run", closed)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["00000007"]
    train(changed(checkpoint_seconds=60.0), tmp_path / "run")
    train(SMALL, tmp_path / "whole")
    assert result(tmp_path / "run") == result(tmp_path / "whole")


def test_events_are_written_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, list[int]] = {}

    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            assert folder == str(tmp_path / "tensorboard") and purge_step == 1

        def __enter__(self) -> Writer:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def add_scalar(self, name: str, value: float, update: int) -> None:
            written.setdefault(name, []).append(update)

        def flush(self) -> None:
            pass

    module = type(torch)("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    train(changed(tensorboard=True), tmp_path)
    assert written["mse"] == [0, 10, 20, 30] == written["time_scale/l0"] == written["lr"]
    assert written["train_loss"] == [10, 20, 30]
