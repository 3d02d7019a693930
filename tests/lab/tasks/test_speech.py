"""Raw speech: splits, scaling, what is left out; on generated clips, and on the real subset where it is."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gatedrnn.lab.data import SETS, Clips, DataError, official_split, speaker_of
from gatedrnn.lab.models import Model
from gatedrnn.lab.records import read_json
from gatedrnn.lab.tasks import Speech, speech
from gatedrnn.lab.tasks.speech import WORDS
from gatedrnn.lab.training import RefusedError, Run, Status, Training, open_trained, train

from ..data import toys
from ..training.runs import StopError, stop_at

EACH = 20  # clips of a word


def _generated(unusable: dict[str, list[str]] | None = None) -> Clips:
    generator = torch.Generator().manual_seed(3)
    loudness = torch.randint(100, 4000, (len(WORDS) * EACH, 1), generator=generator)
    samples = (loudness * torch.randn(len(WORDS) * EACH, 16_000, generator=generator) + 50).to(torch.int16)
    paths = tuple(f"{word}/{7919 * number:08x}_nohash_0.wav" for word in WORDS for number in range(EACH))
    return Clips(samples, torch.arange(len(WORDS)).repeat_interleave(EACH), paths, unusable or {}, "0" * 64)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def open_clips(words: Any, root: Path | None, subset: bool, say: Any) -> Clips:
        calls.append((words, root, subset))
        say("preparing clips")
        return _generated({"silent": ["go/x.wav"]})

    monkeypatch.setattr(speech, "clips", open_clips)
    return calls


def _training(task: Speech) -> Tensor:
    """All training clips (N, T)."""
    return task.stream(len(WORDS) * EACH, 0).next().input[:, :, 0].T


def test_the_data_is_opened_once_and_when_it_is_needed(opened: list[Any]) -> None:
    task = Speech(subset=True, data="somewhere")
    task.check()
    assert (task.input_size, task.output_size, task.last, task.steps, task.t_max) == (1, 10, 1, 16_000, 16_000.0)
    assert opened == []
    said: list[str] = []
    task.open(said.append)
    task.open(said.append)
    _training(task)
    task.splits(None)
    assert opened == [(WORDS, Path("somewhere"), True)] and said == ["preparing clips"]


def test_the_stratified_split_has_its_shares_of_each_word(opened: list[Any]) -> None:
    task = Speech()
    labels = task._clips.labels
    counts = {part: labels[numbers].bincount().tolist() for part, numbers in task._numbers.items()}
    assert counts == {"training": [14] * 10, "validation": [3] * 10, "testing": [3] * 10}
    together = torch.cat(list(task._numbers.values()))
    assert sorted(together.tolist()) == list(range(len(labels)))
    again = Speech()._numbers
    assert all(torch.equal(numbers, again[part]) for part, numbers in task._numbers.items())


def test_the_official_split_is_by_speaker(opened: list[Any]) -> None:
    task = Speech(split="speaker")
    paths = task._clips.paths
    for part, numbers in task._numbers.items():
        assert {official_split(speaker_of(paths[number])) for number in numbers.tolist()} == {part}
    assert sum(map(len, task._numbers.values())) == len(paths)


def test_a_quick_look_takes_some_clips_of_each_word(opened: list[Any]) -> None:
    task = Speech(clips=7)
    assert {part: len(numbers) for part, numbers in task._numbers.items()} == {
        "training": 50,
        "validation": 10,
        "testing": 10,
    }
    with pytest.raises(DataError, match="clips is 21, but there are only 20 of 'yes'"):
        Speech(clips=21).splits(None)


def test_a_batch_is_the_clips_with_their_words(opened: list[Any]) -> None:
    task = Speech(normalise="none")
    batch = next(task.splits(None)["test"].batches(5))
    assert batch.input.shape == (16_000, 5, 1) and batch.target.shape == (1, 5)
    numbers, clips = task._numbers["testing"][:5], task._clips
    assert torch.equal(batch.target[0], clips.labels[numbers])
    assert torch.equal((batch.input[:, :, 0].T * 32768).to(torch.int16), clips.samples[numbers])


def test_normalised_over_the_training_set(opened: list[Any]) -> None:
    values = _training(Speech()).double()
    assert abs(values.mean().item()) < 1e-5 and values.std(correction=0).item() == pytest.approx(1.0, abs=1e-5)
    assert values.std(1).max() > 2 * values.std(1).min()  # loud clips stay loud
    raw = _training(Speech(normalise="none")).double()
    torch.testing.assert_close(values, (raw - raw.mean()) / raw.std(correction=0), rtol=1e-4, atol=1e-5)


def test_normalised_at_each_step(opened: list[Any]) -> None:
    values = _training(Speech(normalise="step")).double()
    torch.testing.assert_close(values.mean(0), torch.zeros(16_000, dtype=torch.float64), rtol=0, atol=1e-4)
    torch.testing.assert_close(values.std(0, correction=0), torch.ones(16_000, dtype=torch.float64), rtol=1e-3, atol=0)


def test_each_clip_normalised(opened: list[Any]) -> None:
    values = _training(Speech(normalise="clip")).double()
    torch.testing.assert_close(values.mean(1), torch.zeros(len(values), dtype=torch.float64), rtol=0, atol=1e-5)
    torch.testing.assert_close(
        values.std(1, correction=0), torch.ones(len(values), dtype=torch.float64), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize("normalise", ["set", "step", "clip", "none"])
def test_the_gain_is_a_factor(normalise: str, opened: list[Any]) -> None:
    plain, scaled = (_training(Speech(normalise=normalise, gain=gain)) for gain in (1.0, 0.2))
    torch.testing.assert_close(scaled, 0.2 * plain)


def test_the_held_out_clips_do_not_enter_the_scaling(opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Speech()._shift_and_scale
    task = Speech()
    task._clips.samples[task._numbers["testing"]] = 30_000
    task._clips.samples[task._numbers["validation"]] = -30_000
    assert all(map(torch.equal, task._shift_and_scale, expected))


def test_a_step_that_is_the_same_in_all_clips_stays_finite(opened: list[Any]) -> None:
    task = Speech(normalise="step")
    task._clips.samples[:, 0] = 7
    values = _training(task)
    assert values.isfinite().all() and not values[:, 0].any()


def test_unusable_clips_are_noted_or_refused(opened: list[Any]) -> None:
    assert Speech().remarks == ("skipped 1 of 201 clips: 1 silent (go/x.wav)",)
    refusing = Speech(unusable="refuse")
    with pytest.raises(
        DataError, match=r"some clips cannot be used; remove them or use skip: 1 of 201 clips: 1 silent \(go/x.wav\)"
    ):
        refusing.open(print)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "random"}, "split must be one of stratified, speaker, got 'random'"),
        ({"normalise": "all"}, "normalise must be one of set, step, clip, none, got 'all'"),
        ({"unusable": "keep"}, "unusable must be one of skip, refuse, got 'keep'"),
        ({"gain": 0.0}, "gain must be above 0 and at most 1e+06, got 0.0"),
        ({"gain": math.nan}, "gain must be above 0 and at most 1e+06, got nan"),
        ({"clips": 6}, "clips must be at least 7, got 6"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Speech(**options).check()


def test_a_run_says_how_far_the_data_is_and_notes_what_was_skipped(opened: list[Any], tmp_path: Path) -> None:
    run = Run(
        Speech(clips=7),
        Model(hidden_size=2, encoder_size=2, read="mean"),
        Training(optimizer="adamw", batch_size=5, updates=2, evaluate_every=1, threads=1),
    )
    said: list[str | None] = []

    def listen(status: Status) -> None:
        said.append(status.note)

    record = train(run, tmp_path / "run", listen)
    notes = [note for note in said if note is not None]
    skipped = "skipped 1 of 201 clips: 1 silent (go/x.wav)"
    assert notes == ["preparing clips", skipped]
    assert record["notes"] == [skipped] and read_json(tmp_path / "run" / "record.json")["notes"] == [skipped]
    assert set(record["test"]) == {"loss", "accuracy"} and record["outcome"] == "finished"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven clips of each word, as files."""
    monkeypatch.setenv("GATEDRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GATEDRNN_DATA", str(tmp_path))
    monkeypatch.setitem(SETS, "speech_commands", toys.word_set(dict.fromkeys(WORDS, 7)))
    clips = {f"{word}/{number}_nohash_0.wav": number for word in WORDS for number in range(7)}
    return toys.write(tmp_path / "words", {path: toys.wav(toys.spoken(seed=seed)) for path, seed in clips.items()})


SMALL = Run(
    Speech(),
    Model(hidden_size=2, encoder_size=2, read="mean"),
    Training(optimizer="adamw", batch_size=5, updates=2, evaluate_every=2, threads=1, checkpoint_seconds=0.0),
)
SKIPPED = "skipped 1 of 70 clips: 1 silent (go/2_nohash_0.wav)"


def _small() -> Run:
    """With a task that has not opened its data."""
    return dataclasses.replace(SMALL, task=Speech())


def _silence(folder: Path, word: str = "go", number: int = 2) -> None:
    (folder / f"{word}/{number}_nohash_0.wav").write_bytes(toys.wav(np.zeros(16_000)))


def test_other_clips_are_refused(folder: Path, tmp_path: Path) -> None:
    """They are split differently: test clips would be those that were trained on."""
    with pytest.raises(StopError):
        train(_small(), tmp_path / "run", stop_at(2))
    clip = folder / "go/2_nohash_0.wav"
    kept = clip.read_bytes()
    _silence(folder)
    refused = r"at update 1 was made with different data \(clips\) than the task speech reads now; use the same files"
    with pytest.raises(RefusedError, match=refused):
        train(_small(), tmp_path / "run")
    with pytest.raises(RefusedError, match=refused):
        open_trained(tmp_path / "run")
    clip.write_bytes(kept)
    assert open_trained(tmp_path / "run").update is None  # the weights of the best validation
    assert train(_small(), tmp_path / "run")["outcome"] == "finished"


def test_a_run_without_a_fingerprint_resumes_and_notes_what_is_different(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As runs that began before there was one."""
    with monkeypatch.context() as patch:
        patch.setattr(Speech, "fingerprint", lambda task: {})
        patch.setattr("gatedrnn.lab.training.state.sizes_of", lambda stream: {})
        with pytest.raises(StopError):
            train(_small(), tmp_path / "run", stop_at(2))
    _silence(folder)
    open_trained(tmp_path / "run")
    assert train(_small(), tmp_path / "run")["notes"] == [SKIPPED]


def test_what_is_not_different_is_noted_once(folder: Path, tmp_path: Path) -> None:
    _silence(folder)
    with pytest.raises(StopError):
        train(_small(), tmp_path / "run", stop_at(2))
    said: list[str | None] = []
    record = train(_small(), tmp_path / "run", lambda status: said.append(status.note))
    assert record["notes"] == [SKIPPED] and record["resumed"] == 1 and SKIPPED not in said


def test_too_few_clips_are_told_with_the_reason(folder: Path) -> None:
    for number in range(5):
        _silence(folder, number=number)
    first = ", ".join(f"go/{number}_nohash_0.wav" for number in range(3))
    with pytest.raises(DataError) as raised:
        Speech().splits(None)
    assert str(raised.value) == (
        "there is no clip of 'go' for validation: too few can be used; unusable are 5 of 7 clips: "
        f"5 silent ({first}, …)"
    )
    for number in (5, 6):
        _silence(folder, number=number)
    with pytest.raises(DataError, match=r"no clip of 'go' for training: .* unusable are 7 of 7 clips: 7 silent \("):
        Speech().splits(None)


def test_too_few_clips_asked_for(opened: list[Any]) -> None:
    with pytest.raises(DataError, match=r"no clip of '\w+' for \w+ among the 7 in use: use more clips$"):
        Speech(clips=7, split="speaker").splits(None)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("GATEDRNN_DATA"), reason="GATEDRNN_DATA does not name a folder of real data")
def test_the_real_subset() -> None:
    for split in ("stratified", "speaker"):
        task = Speech(subset=True, split=split, unusable="refuse")
        counts = {part: task._clips.labels[numbers].bincount().tolist() for part, numbers in task._numbers.items()}
        assert counts == {"training": [140] * 10, "validation": [30] * 10, "testing": [30] * 10}
        values = torch.cat([batch.input for batch in task.splits(None)["validation"].batches(50)], 1)
        assert values.isfinite().all() and 0.5 < values.std().item() < 2
