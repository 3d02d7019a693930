"""Recordings of words as one memory-mapped tensor, made once from a folder of sound files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gatedrnn.lab.data.appearing import alone, appearing_folder
from gatedrnn.lab.data.errors import DataError, naming
from gatedrnn.lab.data.places import cache_folder
from gatedrnn.lab.data.sound import SAMPLES, UnusableError, read_clip
from gatedrnn.lab.data.speech import SpeechData, open_speech

_LAYOUT = 1  # to be counted up when the prepared files change
_SAMPLES_FILE, _INDEX_FILE = "samples.int16", "clips.json"
_PARTS = 10  # how often progress is reported
_NAMED = 3  # clips of each fault in a message

Say = Callable[[str], None]


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

    def unusable_text(self) -> str:
        """How many cannot be used and why, with the first names; empty where all can."""
        faults = [
            f"{len(paths):,} {fault} ({', '.join(paths[:_NAMED])}{', …' * (len(paths) > _NAMED)})"
            for fault, paths in sorted(self.unusable.items())
        ]
        count = sum(map(len, self.unusable.values()))
        return f"{count:,} of {count + len(self.paths):,} clips: {'; '.join(faults)}" if faults else ""


def open_clips(data: SpeechData, root: Path, words: Sequence[str], say: Say) -> Clips:
    """The clips of these words, mapped from a file that is made the first time, when it is damaged, and when the sound
    files have changed. ``say`` is called with the progress."""
    folder = open_speech(data, root)
    paths, state = _look(folder, words)
    place = cache_folder() / "prepared" / f"{data.key}.clips"
    clips = _mapped(place, words, state)
    if clips is None:
        with naming(place, "write"), alone(place):
            clips = _mapped(place, words, state)  # another process may have made it meanwhile
            if clips is None:
                with appearing_folder(place) as new:
                    _prepare(folder, paths, state, new, say)
                clips = _mapped(place, words, state)
    if clips is None:
        raise DataError(f"{place} changed while it was written")
    return clips


def _look(folder: Path, words: Sequence[str]) -> tuple[list[str], str]:
    """The sound files of the words in order, and a digest that changes when one of them does."""
    facts: dict[str, tuple[int, int]] = {}
    for word in words:
        with naming(folder / word), os.scandir(folder / word) as entries:
            for entry in entries:
                if entry.name.endswith(".wav"):
                    status = entry.stat()
                    facts[f"{word}/{entry.name}"] = status.st_size, status.st_ctime_ns
    order = {word: place for place, word in enumerate(words)}
    paths = sorted(facts, key=lambda path: (order[path.partition("/")[0]], path))
    listed = [_LAYOUT, SAMPLES, str(folder.resolve()), [(path, *facts[path]) for path in paths]]
    return paths, hashlib.sha256(json.dumps(listed).encode()).hexdigest()


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
        raise DataError(f"{folder} has no clip that can be used, of {len(paths):,}")
    index = {"state": state, "clips": used, "unusable": unusable}
    (place / _INDEX_FILE).write_text(json.dumps({**index, "checksum": _sealed(index, checksum)}), encoding="utf-8")
    say(f"prepared {len(used):,} clips")


def _sealed(index: dict[str, Any], samples: Any) -> str:
    """One digest of all that is prepared."""
    return hashlib.sha256(json.dumps([index, samples.hexdigest()], sort_keys=True).encode()).hexdigest()


def _mapped(place: Path, words: Sequence[str], state: str) -> Clips | None:
    """What is prepared, if it is there, whole, and of these sound files."""
    with naming(place):
        try:
            index = json.loads((place / _INDEX_FILE).read_text(encoding="utf-8"))
            size = (place / _SAMPLES_FILE).stat().st_size
        except (FileNotFoundError, NotADirectoryError, ValueError):
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
    if _sealed(index, hashlib.sha256(mapped.numpy().data)) != seal:
        return None
    order = {word: label for label, word in enumerate(words)}
    labels = torch.tensor([order[path.partition("/")[0]] for path in paths])
    return Clips(mapped.view(len(paths), SAMPLES), labels, tuple(paths), index["unusable"])
