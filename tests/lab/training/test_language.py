"""Training a language model: exact resume through the switch to averages, memory, other texts."""

from __future__ import annotations

import dataclasses
import gc
import json
from contextlib import suppress
from pathlib import Path

import pytest
from torch import Tensor
from torch.nn import Parameter

from gatedrnn.lab.models import LanguageModel, Model
from gatedrnn.lab.records import CHECKPOINTS, read_run
from gatedrnn.lab.tasks import Adding
from gatedrnn.lab.training import RefusedError, Run, Status, Training, train

from ..tasks.test_language import own_text
from .runs import StopError, changed, result, stop_at

MODEL = LanguageModel(embedding_size=6, hidden_size=8, forget_gate="fast")


def language_run(folder: Path, **options: object) -> Run:
    """Of 17 updates an epoch; the averages begin in the middle."""
    folder.mkdir(exist_ok=True)
    training = Training(
        optimizer="sgd", lr=10.0, clip=0.25, weight_decay=1.2e-6, batch_size=10, epochs=6, average_patience=1,
        checkpoint_seconds=0.0, threads=1,
    )  # fmt: skip
    return changed(Run(own_text(folder), MODEL, training), **options)


def test_resumed_through_the_switch_to_the_bits(tmp_path: Path) -> None:
    """Dropout, carry, chunks, averages and the best weights continue where they were."""
    run = language_run(tmp_path / "text")
    record = train(run, tmp_path / "whole")
    values = [line["perplexity"] for line in read_run(tmp_path / "whole").metrics]
    switch = next(at for at in range(2, len(values)) if values[at] > min(values[: at - 1]))
    assert 1 < switch < 6  # both ways of training are seen
    assert record["updates"] == 102 and record["epochs"] == 6
    for update in (1, 16, 17, 18, *range(20, 102, 9)):
        with pytest.raises(StopError):
            train(run, tmp_path / "parts", stop_at(update))
    train(run, tmp_path / "parts")
    assert result(tmp_path / "parts") == result(tmp_path / "whole")


def test_blocks_of_the_test_text_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = language_run(tmp_path / "text", epochs=1)
    monkeypatch.setattr(type(run.task), "block", 40)
    test = train(run, tmp_path / "run")["test"]
    blocks = test["blocks"]
    assert blocks["samples"] == 40
    assert [len(sums) for sums in blocks["sums"].values()] == [3] * 9  # 102 targets
    assert sum(blocks["sums"]["loss"]) / 102 == pytest.approx(test["loss"], rel=1e-12)
    assert blocks["sums"]["targets under 100"] == [40, 40, 22]
    assert blocks["sums"]["loss under 100"] == blocks["sums"]["loss"]


def living_bytes() -> int:
    """Of all tensors that Python reaches, each storage once."""
    sizes = {}
    for found in gc.get_objects():
        if type(found) in (Tensor, Parameter):
            with suppress(NotImplementedError):  # one that another test left and that has no storage: sparse, say
                sizes[found.untyped_storage().data_ptr()] = found.untyped_storage().nbytes()
    return sum(sizes.values())


def test_memory_does_not_grow_after_the_switch(tmp_path: Path) -> None:
    """Over 200 updates with 20 evaluations; a copy of the weights kept by each would be 80 MB. The living tensors are
    counted, because the memory of the process also changes with what the allocator keeps from other tests."""
    folder = tmp_path / "text"
    folder.mkdir()
    training = Training(
        optimizer="sgd", lr=30.0, clip=0.25, batch_size=10, updates=260, evaluate_every=10, average_patience=1,
        checkpoint_seconds=1e6, threads=1,
    )  # fmt: skip
    model = LanguageModel(embedding_size=200, hidden_size=220)
    run = Run(own_text(folder, valid=24, test=12), model, training)
    seen: dict[int, int] = {}

    def note(status: Status) -> None:
        if status.evaluated:
            gc.collect()
            seen[status.update] = living_bytes()

    train(run, tmp_path / "run", note)
    values = [line["perplexity"] for line in read_run(tmp_path / "run").metrics]
    switch = 10 * next(at for at in range(2, len(values)) if values[at] > min(values[: at - 1]))
    assert switch <= 50
    after = [seen[update] for update in range(switch + 10, 261, 10)]
    # The most of each half: the state and the batch in use may differ with the length of the chunk.
    assert max(after[10:]) <= max(after[:10])


def test_another_text_is_refused(tmp_path: Path) -> None:
    run = language_run(tmp_path / "text")
    with pytest.raises(StopError):
        train(run, tmp_path / "run", stop_at(20))
    own_text(tmp_path / "text", test=104)  # in the same files
    before = sorted(path.name for path in (tmp_path / "run" / CHECKPOINTS).iterdir())
    fresh = dataclasses.replace(run, task=dataclasses.replace(run.task))
    with pytest.raises(RefusedError, match=r"was made with different data \(test\) than the task text reads now"):
        train(fresh, tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run" / CHECKPOINTS).iterdir()) == before


def test_models_and_tasks_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the task adding needs a model that reads features \(Model\), not Language"):
        Run(Adding(10), MODEL).check()
    task = own_text(tmp_path)
    with pytest.raises(ValueError, match=r"the task text needs a model that reads words \(LanguageModel\), not Model"):
        Run(task, Model()).check()


def test_options_are_read_back(tmp_path: Path) -> None:
    run = language_run(tmp_path / "text")
    assert Run.from_json(json.loads(json.dumps(run.as_json()))) == run


def test_the_monitor_draws_nothing(tmp_path: Path) -> None:
    """Dropout on weights is off while gates and gradients are looked at."""
    for monitor in (False, True):
        train(language_run(tmp_path / "text", epochs=1, monitor=monitor), tmp_path / str(monitor))
    watched = read_run(tmp_path / "True").metrics[-1].pop("stability")
    assert list(watched) == ["rnns.0.l0", "rnns.1.l0", "rnns.2.l0"]
    first, second = (result(tmp_path / str(monitor)) for monitor in (False, True))
    for line in second["metrics"]:
        del line["stability"]
    assert first == second
