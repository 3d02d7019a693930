"""Recordings of words as one memory-mapped tensor, made once from a folder of sound files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.data.appearing import alone, appearing_folder
from gatedrnn.lab.data.errors import DataError, first_of, naming
from gatedrnn.lab.data.places import cache_folder
from gatedrnn.lab.data.sound import SAMPLES, UNREADABLE, UnusableError, read_clip
from gatedrnn.lab.data.speech import Say, SpeechData, SpeechFolder, find_speech

_LAYOUT = 2  # to be counted up when the prepared files change
_SAMPLES_FILE, _INDEX_FILE = "samples.int16", "clips.json"
_PARTS = 10  # how often progress is reported


@dataclass(frozen=True)
class Clips:
    """The clips of some words that can be used."""

    #: (N, SAMPLES) of int16.
    samples: Tensor
    #: (N,): the place of the word among those asked for.
    labels: Tensor
    #: "word/file.wav" of each.
    paths: tuple[str, ...]
    #: The paths of the others, by what is wrong with them.
    unusable: dict[str, list[str]]
    #: Of the samples, sha256.
    checksum: str

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the paths and the samples, and only with them."""
        return hashlib.sha256(json.dumps([self.paths, self.checksum]).encode()).hexdigest()[:16]

    def unusable_text(self, word: str | None = None) -> str:
        """How many cannot be used and why, with the first names; empty where all can. Of one word if it is given."""
        folder = "" if word is None else f"{word}/"
        unusable = {
            fault: own
            for fault, paths in self.unusable.items()
            if (own := [path for path in paths if path.startswith(folder)])
        }
        count = sum(map(len, unusable.values()))
        used = sum(path.startswith(folder) for path in self.paths)
        return f"{count:,} of {count + used:,} clips: {_faults(unusable)}" if count else ""


def open_clips(data: SpeechData, root: Path, words: Sequence[str], say: Say) -> Clips:
    """The clips of these words, mapped from a file that is made the first time, when it is damaged, and when the sound
    files have changed. ``say`` is called with the progress."""
    folder = find_speech(data, root, say)
    paths, state = _look(folder, words)
    place = cache_folder() / "prepared" / f"{data.key}.clips"
    clips = _current(place, folder.path, words, state)
    if clips is None:
        if folder.checksums is not None:
            say("checking unpacked clips")
            folder = find_speech(data, root, say, compared=words)
            paths, state = _look(folder, words)
        with naming(place, "write"), alone(place):
            clips = _current(place, folder.path, words, state)  # another process may have made it meanwhile
            if clips is None:
                with appearing_folder(place) as new:
                    _prepare(folder.path, paths, state, new, say)
                clips = _mapped(place, words, state)
    if clips is None:
        raise DataError(f"{place} changed while it was written")
    return clips


def _look(folder: SpeechFolder, words: Sequence[str]) -> tuple[list[str], str]:
    """The sound files of the words in order, and a digest that changes when one of them does."""
    paths = [path for word in words for path in sorted(folder.clips(word))]
    listed = [_LAYOUT, SAMPLES, str(folder.path.resolve()), [(path, *_facts(folder.path / path)) for path in paths]]
    return paths, hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _facts(path: Path) -> tuple[int, int]:
    """What changes when a file does. A link that leads nowhere is as good as an empty file: it cannot be used."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_ctime_ns


def _prepare(folder: Path, paths: list[str], state: str, place: Path, say: Say) -> None:
    used: list[str] = []
    unusable: dict[str, list[str]] = {}
    checksum = hashlib.sha256()
    with open(place / _SAMPLES_FILE, "wb") as stream:
        for done, path in enumerate(paths):
            if done % -(-len(paths) // _PARTS) == 0:
                say(f"preparing clips, once: {done:,} of {len(paths):,}")
            try:
                content = read_clip(folder / path).tobytes()
            except UnusableError as wrong:
                unusable.setdefault(str(wrong), []).append(path)
                continue
            stream.write(content)
            checksum.update(content)
            used.append(path)
    if not used:
        raise DataError(f"{folder} has no clip that can be used, of {len(paths):,}: {_faults(unusable)}")
    index = {"state": state, "clips": used, "unusable": unusable}
    sealed = {**index, "checksum": _sealed(index, checksum.hexdigest())}
    (place / _INDEX_FILE).write_text(json.dumps(sealed), encoding="utf-8")
    say(f"prepared {len(used):,} clips")


def _faults(unusable: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{len(paths):,} {fault} ({first_of(paths)})" for fault, paths in sorted(unusable.items()))


def _sealed(index: dict[str, Any], samples: str) -> str:
    """One digest of all that is prepared; ``samples`` is that of the samples."""
    return hashlib.sha256(json.dumps([index, samples], sort_keys=True).encode()).hexdigest()


def _current(place: Path, folder: Path, words: Sequence[str], state: str) -> Clips | None:
    """What is prepared, if it would not become different now: a clip that could not be read is tried again, because the
    error may have passed while the file stayed as it is."""
    clips = _mapped(place, words, state)
    if clips is None:
        return None
    for fault, paths in clips.unusable.items():
        if fault.startswith(UNREADABLE) and any(_fault(folder / path) != fault for path in paths):
            return None
    return clips


def _fault(path: Path) -> str | None:
    try:
        read_clip(path)
    except UnusableError as wrong:
        return str(wrong)
    return None


def _mapped(place: Path, words: Sequence[str], state: str) -> Clips | None:
    """What is prepared, if it is there, whole, and of these sound files."""
    with naming(place):
        try:
            index = json.loads((place / _INDEX_FILE).read_text(encoding="utf-8"))
            size = (place / _SAMPLES_FILE).stat().st_size
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
            return None
    if not isinstance(index, dict) or index.get("state") != state:
        return None
    seal, paths = index.pop("checksum", None), index.get("clips")
    if not isinstance(paths, list) or size != 2 * SAMPLES * len(paths):
        return None
    try:
        mapped = torch.from_file(str(place / _SAMPLES_FILE), shared=False, size=size // 2, dtype=torch.int16)
    except RuntimeError as wrong:  # torch's word for what the system refuses
        raise DataError(f"cannot read {place / _SAMPLES_FILE}: {wrong}") from wrong
    checksum = hashlib.sha256(mapped.numpy().data).hexdigest()
    if _sealed(index, checksum) != seal:
        return None
    order = {word: label for label, word in enumerate(words)}
    labels = torch.tensor([order[path.partition("/")[0]] for path in paths])
    return Clips(mapped.view(len(paths), SAMPLES), labels, tuple(paths), index["unusable"], checksum)
