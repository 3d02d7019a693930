"""A run with its folder stays with the data that it was begun with; a refusal changes nothing."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gatedrnn.lab.records import CHECKPOINTS, OPTIONS_FILE, last_checkpoint, read_run
from gatedrnn.lab.tasks import Epochs, Stream
from gatedrnn.lab.training import RefusedError, Run, train

from ..tasks.test_language import own_text
from .runs import changed, snapshot, stopped
from .test_language import language_run
from .toy import IMAGES, ToyImages

DIFFERENT = r"was made with different data \({}\) than the task {} reads now; use the same "


def _fresh(run: Run, **options: Any) -> Run:
    """The run with a task that opens its data again."""
    return changed(dataclasses.replace(run, task=dataclasses.replace(run.task)), **options)


def _short_text(folder: Path) -> Run:
    return language_run(folder, epochs=1, checkpoint_seconds=1e6)


@pytest.mark.parametrize("words", [1500, 2000])
def test_a_run_is_not_extended_with_another_text(words: int, tmp_path: Path) -> None:
    """With a shorter text an epoch has fewer updates; with other words of the same number it has as many."""
    run = _short_text(tmp_path / "text")
    train(run, tmp_path / "run")
    own_text(tmp_path / "text", train=words)
    text = (tmp_path / "text" / "train.txt").read_text()
    (tmp_path / "text" / "train.txt").write_text(" ".join(reversed(text.split())) + "\n")
    before = snapshot(tmp_path / "run")
    with pytest.raises(RefusedError, match=DIFFERENT.format("vocabulary, train, valid, test", "text") + "files"):
        train(_fresh(run, epochs=2), tmp_path / "run")
    assert snapshot(tmp_path / "run") == before
    assert train(run, tmp_path / "run")["updates"] == 17  # the first command is not refused either


def test_a_record_without_checkpoints_is_not_replaced(tmp_path: Path) -> None:
    run = _short_text(tmp_path / "text")
    train(run, tmp_path / "run")
    for path in sorted((tmp_path / "run" / CHECKPOINTS).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    own_text(tmp_path / "text", test=104)
    before = snapshot(tmp_path / "run")
    with pytest.raises(RefusedError, match=r"record\.json " + DIFFERENT.format("test", "text")):
        train(_fresh(run, epochs=2), tmp_path / "run")
    assert snapshot(tmp_path / "run") == before


def test_a_finished_run_does_not_answer_for_another_text(tmp_path: Path) -> None:
    run = _short_text(tmp_path / "text")
    record = train(run, tmp_path / "run")
    assert record["fingerprint"] == run.task.fingerprint()
    assert train(_fresh(run), tmp_path / "run") == record
    own_text(tmp_path / "text", test=104)
    before = snapshot(tmp_path / "run")
    with pytest.raises(RefusedError, match=r"record\.json " + DIFFERENT.format("test", "text") + "files"):
        train(_fresh(run), tmp_path / "run")
    assert snapshot(tmp_path / "run") == before


def _said(run: Run, out: Path) -> tuple[list[str], dict[str, Any]]:
    said: list[str] = []
    record = train(run, out, lambda status: said.append(status.note) if status.note else None)
    return said, record


def test_a_finished_run_answers_without_its_data(tmp_path: Path) -> None:
    """But says that it could not be compared."""
    run = _short_text(tmp_path / "text")
    record = train(run, tmp_path / "run")
    test = tmp_path / "text" / "test.txt"
    test.unlink()
    said, again = _said(_fresh(run), tmp_path / "run")
    assert again == record
    assert said == [
        f"the data of this finished run was not compared with that of the task text: {test} cannot be read: "
        "No such file or directory"
    ]


@pytest.mark.parametrize("wrong", [KeyError("no column 'sex'"), RuntimeError(""), ImportError("no module\nnamed so")])
def test_a_finished_run_answers_whatever_its_task_raises(
    wrong: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _short_text(tmp_path / "text")
    record = train(run, tmp_path / "run")

    def broken(self: Any, say: Any) -> None:
        raise wrong

    monkeypatch.setattr(type(run.task), "open", broken)
    (said,), again = _said(_fresh(run), tmp_path / "run")
    assert again == record
    why = str(wrong).partition("\n")[0] or "RuntimeError"
    assert said == f"the data of this finished run was not compared with that of the task text: {why}"


def test_a_record_from_before_the_fingerprint_stays_valid(tmp_path: Path) -> None:
    run = _short_text(tmp_path / "text")
    record = train(run, tmp_path / "run")
    del record["fingerprint"]
    (tmp_path / "run" / "record.json").write_text(json.dumps(record))
    (tmp_path / "text" / "test.txt").unlink()
    assert _said(_fresh(run), tmp_path / "run") == ([], record)


def test_a_task_without_a_fingerprint_has_none_in_its_record(tmp_path: Path) -> None:
    assert "fingerprint" not in train(changed(IMAGES, epochs=1), tmp_path)


@dataclass(frozen=True)
class _Fewer(ToyImages):
    """The same task with fewer images to train on."""

    samples = 70

    def stream(self, batch_size: int, seed: int) -> Stream:
        return Epochs(self.samples, self.take, batch_size, seed)


@pytest.mark.parametrize(("samples", "said"), [(50, "50 samples, before 70"), (69, "69 samples, before 70")])
@pytest.mark.parametrize("ended", [True, False])
def test_another_number_of_samples_is_refused(
    samples: int, said: str, ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """69 make as many batches of 8 in an epoch as 70."""
    run = dataclasses.replace(IMAGES, task=_Fewer())
    if ended:
        train(changed(run, epochs=2), tmp_path)
    else:
        stopped(tmp_path, 12, run)
    before = snapshot(tmp_path)
    monkeypatch.setattr(_Fewer, "samples", samples)
    with pytest.raises(RefusedError, match=DIFFERENT.format(said, "toy_images") + "data"):
        train(run, tmp_path)
    assert snapshot(tmp_path) == before


@dataclass(frozen=True)
class _Repeated(ToyImages):
    """Of a stream that does not say how many samples it has."""

    batches = 9

    def stream(self, batch_size: int, seed: int) -> Stream:
        stream = Epochs(70, self.take, batch_size, seed)
        stream.samples_an_epoch, stream.updates_an_epoch = None, self.batches
        return stream


@dataclass(frozen=True)
class _Attributes(ToyImages):
    """Of a stream of one's own: its attributes are its own matter, and a size may be any integer."""

    def stream(self, batch_size: int, seed: int) -> Stream:
        stream = Epochs(70, self.take, batch_size, seed)
        stream.samples = torch.arange(3)  # type: ignore[attr-defined]
        stream.samples_an_epoch = np.int64(70)  # type: ignore[assignment]
        return stream


def test_the_attributes_of_a_custom_stream_do_not_hinder_saving(tmp_path: Path) -> None:
    run = dataclasses.replace(IMAGES, task=_Attributes())
    stopped(tmp_path, 12, run)
    key = json.loads((tmp_path / OPTIONS_FILE).read_text())["key"]
    assert last_checkpoint(tmp_path, [key])[0].note["sizes"] == {"samples": 70, "updates an epoch": 9}
    assert train(run, tmp_path)["resumed"] == 1


def test_another_number_of_updates_an_epoch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = dataclasses.replace(IMAGES, task=_Repeated())
    train(changed(run, epochs=2), tmp_path)
    before = snapshot(tmp_path)
    monkeypatch.setattr(_Repeated, "batches", 7)
    with pytest.raises(RefusedError, match=DIFFERENT.format("7 updates an epoch, before 9", "toy_images")):
        train(run, tmp_path)
    assert snapshot(tmp_path) == before


def test_a_checkpoint_from_before_the_sizes_were_noted_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = changed(IMAGES, epochs=2)
    train(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("gatedrnn.lab.training.state.sizes_of", lambda stream: {})
        stopped(tmp_path / "run", 12, run)
    assert train(run, tmp_path / "run")["final"] == train(run, tmp_path / "whole")["final"]


def test_a_training_set_that_is_too_small_leaves_no_folder(tmp_path: Path) -> None:
    run = language_run(tmp_path / "text", batch_size=300)
    with pytest.raises(ValueError, match="choose a smaller batch_size or bptt"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def _task_in(path: Path, text: str) -> Any:
    """The task of a file, as the command line loads it."""
    from gatedrnn.cli.own_task import load_task

    path.write_text(text)
    return load_task(path)()


_TASK = """
from dataclasses import dataclass
from tests.lab.training.toy import ToyImages

@dataclass(frozen=True)
class Mine(ToyImages):
    name = "mine"
"""


def test_a_changed_file_of_a_custom_task_is_noted(tmp_path: Path) -> None:
    """Where the run is resumed, extended or found finished; a run is not refused for it."""
    path, out = tmp_path / "mine.py", tmp_path / "run"
    run = dataclasses.replace(IMAGES, task=_task_in(path, _TASK))
    stopped(out, 12, run)
    digest = json.loads((out / "environment.json").read_text())["task_file"]
    assert isinstance(digest, str) and len(digest) == 16
    note = "the file of the task has changed since this run was begun; the result may depend on both versions"
    run = dataclasses.replace(run, task=_task_in(path, _TASK + "# changed\n"))
    said, record = _said(run, out)
    assert said == [note, "resuming from update 11"] and record["notes"] == [note]
    assert _said(run, out) == ([], record)
    run = dataclasses.replace(run, task=_task_in(path, _TASK + "# changed again\n"))
    after = "the file of the task has changed since this run ended; this is the result of the version before"
    assert _said(run, out) == ([after], record)
    said, record = _said(changed(run, epochs=6), out)
    assert note in said and record["notes"] == [note, note]
    assert [later["task_file"] for later in json.loads((out / "environment.json").read_text())["later"]].count(
        digest
    ) == 0


def test_an_environment_without_a_digest_of_the_file(tmp_path: Path) -> None:
    """Of a run that was begun before there was one: nothing is known, nothing is said."""
    run, out = dataclasses.replace(IMAGES, task=_task_in(tmp_path / "mine.py", _TASK)), tmp_path / "run"
    stopped(out, 12, run)
    environment = json.loads((out / "environment.json").read_text())
    del environment["task_file"]
    (out / "environment.json").write_text(json.dumps(environment))
    assert _said(run, out)[0] == ["resuming from update 11"]


def test_a_built_in_task_has_no_file(tmp_path: Path) -> None:
    train(changed(updates=1), tmp_path)
    assert "task_file" not in (read_run(tmp_path).environment or {})


def test_the_samples_of_a_stream() -> None:
    task = ToyImages()
    assert Epochs(70, task.take, 8, 0).samples_an_epoch == 70
