"""Clips as one mapped tensor: what is in it, when it is made again, and every kind of sound file that cannot be used."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gatedrnn.lab.data import SETS, Clips, DataError, MissingDataError, clips, official_split, sound, speaker_of
from gatedrnn.lab.data.clips import open_clips
from gatedrnn.lab.data.sound import UnusableError, read_clip
from tests.lab.data import toys

WORDS = ("yes", "no")
GOOD = {
    f"{word}/{name}_nohash_0.wav": toys.spoken(seed=7 * n + m)
    for n, word in enumerate(("no", "yes"))
    for m, name in enumerate("abc")
}


def written(root: Path, changes: dict[str, bytes | None] | None = None) -> Path:
    contents = {**{path: toys.wav(samples) for path, samples in GOOD.items()}, **(changes or {})}
    return toys.write(root / "words", {path: content for path, content in contents.items() if content is not None})


def opened(root: Path, say: Callable[[str], None] = lambda text: None) -> Clips:
    folder = root / "words"
    counts = {word: sum(1 for _ in (folder / word).glob("*.wav")) for word in WORDS}
    return open_clips(toys.word_set(counts), root, WORDS, say)


def test_the_samples_are_those_of_the_files(tmp_path: Path) -> None:
    written(tmp_path)
    found = opened(tmp_path)
    assert found.paths == tuple(f"{word}/{name}_nohash_0.wav" for word in WORDS for name in "abc")
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.samples.dtype == torch.int16 and found.unusable == {} and found.unusable_text() == ""
    for path, samples in zip(found.paths, found.samples, strict=True):
        assert np.array_equal(samples.numpy(), GOOD[path])


def test_it_is_made_once_and_says_how_far_it_is(tmp_path: Path, cache: Path) -> None:
    written(tmp_path)
    said: list[str] = []
    first = opened(tmp_path, said.append)
    assert said[0] == "preparing clips, once: 0 of 6" and said[-1] == "prepared 6 clips" and len(said) <= 11
    (place,) = (cache / "prepared").iterdir()
    made = place.stat().st_ino
    said.clear()
    again = opened(tmp_path, said.append)
    assert said == [] and place.stat().st_ino == made and torch.equal(again.samples, first.samples)


def test_what_is_written_to_the_tensor_does_not_reach_the_file(tmp_path: Path) -> None:
    written(tmp_path)
    opened(tmp_path).samples.zero_()
    assert np.array_equal(opened(tmp_path).samples[0].numpy(), GOOD["yes/a_nohash_0.wav"])


DAMAGE = [
    "samples shorter",
    "a sample changed",
    "samples gone",
    "index gone",
    "index no JSON",
    "a path changed",
    "a list",
    "samples a folder",
    "index a folder",
    "a file instead",
    "a link instead",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_preparation_is_made_again(damage: str, tmp_path: Path, cache: Path) -> None:
    written(tmp_path)
    expected = opened(tmp_path)
    (place,) = (cache / "prepared").iterdir()
    samples, index = place / "samples.int16", place / "clips.json"
    if damage == "samples shorter":
        samples.write_bytes(samples.read_bytes()[:-2])
    elif damage == "a sample changed":
        samples.write_bytes(b"?" + samples.read_bytes()[1:])
    elif damage == "samples gone":
        samples.unlink()
    elif damage == "index gone":
        index.unlink()
    elif damage == "index no JSON":
        index.write_text("{")
    elif damage == "a path changed":
        index.write_text(index.read_text().replace("yes/a", "yes/z"))
    elif damage.endswith("a folder"):
        path = samples if damage == "samples a folder" else index
        path.unlink()
        path.mkdir()
    elif damage.endswith("instead"):
        shutil.rmtree(place)
        place.write_bytes(b"?") if damage == "a file instead" else place.symlink_to(tmp_path / "nowhere")
    else:
        index.write_text(json.dumps([1]))
    found = opened(tmp_path)
    assert found.paths == expected.paths and np.array_equal(found.samples[0].numpy(), GOOD["yes/a_nohash_0.wav"])


def test_a_changed_sound_file_is_read_again(tmp_path: Path) -> None:
    folder = written(tmp_path)
    opened(tmp_path)
    other = toys.spoken(seed=99)
    (folder / "yes/a_nohash_0.wav").write_bytes(toys.wav(other))
    assert np.array_equal(opened(tmp_path).samples[0].numpy(), other)


def test_the_fingerprint_is_that_of_paths_and_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path)
    first = opened(tmp_path)
    samples = b"".join(GOOD[path].tobytes() for path in first.paths)
    assert first.checksum == hashlib.sha256(samples).hexdigest()
    assert opened(tmp_path).fingerprint == first.fingerprint
    monkeypatch.setenv("GATEDRNN_CACHE", str(tmp_path / "another cache"))
    shutil.copytree(folder, tmp_path / "elsewhere" / "words")
    assert opened(tmp_path / "elsewhere").fingerprint == first.fingerprint  # wherever, and whenever made
    (folder / "no/b_nohash_0.wav").rename(folder / "no/bb_nohash_0.wav")
    renamed = opened(tmp_path)
    assert renamed.checksum == first.checksum and renamed.fingerprint != first.fingerprint
    (folder / "no/bb_nohash_0.wav").rename(folder / "no/b_nohash_0.wav")
    (folder / "no/b_nohash_0.wav").write_bytes(toys.wav(GOOD["no/b_nohash_0.wav"][::-1]))
    assert opened(tmp_path).fingerprint != first.fingerprint
    (folder / "no/b_nohash_0.wav").write_bytes(b"")
    silent = opened(tmp_path)
    assert len(silent.paths) == 5 and silent.fingerprint != first.fingerprint


def test_a_clip_damaged_after_unpacking_is_unpacked_again(tmp_path: Path, cache: Path) -> None:
    """Also if its size is the same; and a file that was not unpacked is no clip."""
    archive = toys.tar({path: toys.wav(samples) for path, samples in GOOD.items()}, ".")
    data = toys.word_set(dict.fromkeys(WORDS, 3), archive)
    toys.write(tmp_path, {"words.tar.gz": archive})
    first = open_clips(data, tmp_path, WORDS, print)
    unpacked = cache / "prepared" / data.key
    (unpacked / "yes/a_nohash_0.wav").write_bytes(toys.wav(toys.spoken(seed=99)))
    (unpacked / "yes/zzz.wav").write_bytes(toys.wav(toys.spoken(seed=98)))
    said: list[str] = []
    again = open_clips(data, tmp_path, WORDS, said.append)
    assert again.paths == first.paths and torch.equal(again.samples, first.samples)
    assert said[:3] == [
        "checking unpacked clips",
        "checking words.tar.gz",
        "unpacking words.tar.gz, once: 0 files",
    ]
    assert (unpacked / "yes/a_nohash_0.wav").read_bytes() == toys.wav(GOOD["yes/a_nohash_0.wav"])
    (unpacked / "yes/zzz.wav").write_bytes(toys.wav(toys.spoken(seed=98)))
    said.clear()
    assert open_clips(data, tmp_path, WORDS, said.append).paths == first.paths and said == []


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "two channels": (toys.wav(toys.spoken(32_000), channels=2), "not mono"),
    "8 bits": (toys.wav(toys.spoken(8_000), width=1), "not 16-bit"),
    "32 bits": (toys.wav(toys.spoken(32_000), width=4), "not 16-bit"),
    "8 kHz": (toys.wav(toys.spoken(), rate=8_000), "not sampled at 16,000 Hz"),
    "shorter": (toys.wav(toys.spoken(15_999)), "not 16,000 samples long"),
    "longer": (toys.wav(toys.spoken(16_001)), "not 16,000 samples long"),
    "silent": (toys.wav(np.zeros(16_000)), "silent"),
    "silent at another level": (toys.wav(np.full(16_000, 5)), "silent"),
    "truncated": (toys.wav(toys.spoken())[:-100], "truncated"),
    "no sound at all": (b"?" * 100, "not an uncompressed WAV file"),
    "an empty file": (b"", "not an uncompressed WAV file"),
    "a part of a header": (toys.wav(toys.spoken())[:30], "not an uncompressed WAV file"),
    "no samples": (toys.wav(toys.spoken(0)), "not 16,000 samples long"),
    "a header alone": (toys.wav(toys.spoken())[:46], "truncated"),
    "a compressed WAV": (
        toys.wav(toys.spoken()).replace(b"\x01\x00\x01\x00", b"\x55\x00\x01\x00", 1),
        "not an uncompressed WAV",
    ),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_clip_that_cannot_be_used_is_named_and_left_out(what: str, tmp_path: Path) -> None:
    content, fault = UNUSABLE[what]
    written(tmp_path, {"no/b_nohash_0.wav": content})
    found = opened(tmp_path)
    assert len(found.paths) == 5 and found.labels.tolist() == [0, 0, 0, 1, 1]
    ((said, paths),) = found.unusable.items()
    assert said.startswith(fault) and paths == ["no/b_nohash_0.wav"]
    assert np.array_equal(found.samples[3].numpy(), GOOD["no/a_nohash_0.wav"])
    assert np.array_equal(found.samples[4].numpy(), GOOD["no/c_nohash_0.wav"])
    again = opened(tmp_path)
    assert again.unusable == found.unusable


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("nowhere", "cannot be read (No such file or directory)"),
        ("b_nohash_0.wav", "cannot be read (Too many levels of symbolic links)"),
    ],
)
def test_a_link_to_nowhere_is_named_and_left_out(target: str, fault: str, tmp_path: Path) -> None:
    clip = written(tmp_path) / "no/b_nohash_0.wav"
    clip.unlink()
    clip.symlink_to(target)
    assert opened(tmp_path).unusable == {fault: ["no/b_nohash_0.wav"]}
    said: list[str] = []
    assert len(opened(tmp_path, said.append).paths) == 5 and said == []
    clip.unlink()
    clip.symlink_to("a_nohash_0.wav")
    found = opened(tmp_path)
    assert found.unusable == {} and np.array_equal(found.samples[4].numpy(), GOOD["no/a_nohash_0.wav"])


def test_many_are_counted_and_some_of_them_named(tmp_path: Path) -> None:
    short = {f"yes/{name}_nohash_0.wav": toys.wav(toys.spoken(100 + n)) for n, name in enumerate("defg")}
    written(tmp_path, {**short, "no/a_nohash_0.wav": toys.wav(np.zeros(16_000))})
    assert opened(tmp_path).unusable_text() == (
        "5 of 10 clips: 4 not 16,000 samples long (yes/d_nohash_0.wav, yes/e_nohash_0.wav, yes/f_nohash_0.wav, …); "
        "1 silent (no/a_nohash_0.wav)"
    )


def test_a_clip_that_must_not_be_read_becomes_usable_when_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)

    def refusing(path: Path, mode: str) -> Any:
        if path.name == "b_nohash_0.wav" and path.parent.name == "no":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return open(path, mode)

    with monkeypatch.context() as patch:
        patch.setattr(sound, "open", refusing, raising=False)
        first = opened(tmp_path)
        assert first.unusable == {"cannot be read (Permission denied)": ["no/b_nohash_0.wav"]} and len(first.paths) == 5
        said: list[str] = []
        assert opened(tmp_path, said.append).unusable == first.unusable and said == []
    found = opened(tmp_path)  # the file is as it was: the error has passed
    assert found.unusable == {} and np.array_equal(found.samples[4].numpy(), GOOD["no/b_nohash_0.wav"])


def test_a_folder_in_place_of_a_clip(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="cannot be read \\(Is a directory\\)"):
        read_clip(tmp_path)


def test_no_usable_clip_is_an_error_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    written(tmp_path, dict.fromkeys(GOOD, toys.wav(np.zeros(16_000))))
    with pytest.raises(DataError, match="words has no clip that can be used, of 6: 6 silent \\(yes/a_nohash"):
        opened(tmp_path)
    assert list((cache / "prepared").iterdir()) == []


def test_a_missing_word_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path)
    shutil.rmtree(folder / "no")
    with pytest.raises(DataError, match=f"the folder of a word is missing in {folder}: no"):
        open_clips(toys.word_set({"yes": 3, "no": 3}), tmp_path, WORDS, print)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_a_damaged_header_is_never_a_crash(data: st.DataObject) -> None:
    content = bytearray(toys.wav(GOOD["no/a_nohash_0.wav"]))
    for place, value in data.draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), min_size=1, max_size=6)):
        content[place] = value
    path = Path(os.environ["GATEDRNN_CACHE"]).parent / "clip.wav"
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), 10, 43, 44, 61]))])
    with contextlib.suppress(UnusableError):
        assert read_clip(path).shape == (16_000,)


def test_the_official_split_is_a_function_of_the_speaker() -> None:
    """As the manifest of the subset lists these."""
    assert speaker_of("right/a6d586b7_nohash_3.wav") == "a6d586b7"
    listed = {
        "training": ("01bb6a2a", "06a79a03", "0b77ee66", "8134f43f"),
        "validation": ("264f471d", "44c201dd", "471a0925", "a6d586b7"),
        "testing": ("096456f9", "0fa1e7a9", "1528225c", "b97c9f77"),
    }
    for split, speakers in listed.items():
        assert [official_split(speaker) for speaker in speakers] == [split] * 4


@pytest.mark.parametrize(("name", "subset"), [("speech_commands", False), ("speech_commands_10_small", True)])
def test_by_name(name: str, subset: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETS, name, toys.word_set(dict.fromkeys(WORDS, 3)))
    with pytest.raises(MissingDataError, match=f"words was not found in {tmp_path}"):
        clips(WORDS, tmp_path, subset)
    written(tmp_path)
    assert len(clips(WORDS, tmp_path, subset).paths) == 6
