"""One recording of a word: the required format, and what is wrong with clips of another."""

from __future__ import annotations

import hashlib
import struct
import wave
from pathlib import Path

import numpy as np

RATE = 16_000  # samples a second
SAMPLES = 16_000  # of a clip
UNREADABLE = "cannot be read"  # how the text of an error of the system begins: it may pass
_WIDTH = 2  # bytes of a sample
_MOST_SPEAKERS = 2**27 - 1


class UnusableError(Exception):
    """A clip that cannot be used; the text says why in words that fit many of them."""


def read_clip(path: Path) -> np.ndarray:
    """The samples of a WAV file, (SAMPLES,) of int16. Raises UnusableError for anything else."""
    try:
        with open(path, "rb") as stream, wave.open(stream) as clip:
            facts = clip.getnchannels(), clip.getsampwidth(), clip.getframerate(), clip.getnframes()
            for found, expected, fault in zip(facts, (1, _WIDTH, RATE, SAMPLES), _FAULTS, strict=True):
                if found != expected:
                    raise UnusableError(fault)
            content = clip.readframes(SAMPLES)
    except OSError as wrong:
        raise UnusableError(f"{UNREADABLE} ({wrong.strerror or wrong})") from wrong
    except (wave.Error, EOFError, struct.error, RuntimeError) as wrong:  # what wave makes of damaged headers
        raise UnusableError("not an uncompressed WAV file") from wrong
    if len(content) != SAMPLES * _WIDTH:
        raise UnusableError("truncated")
    samples = np.frombuffer(content, "<i2").astype(np.int16)
    if (samples == samples[0]).all():
        raise UnusableError("silent")
    return samples


# In the order in which they are looked at.
_FAULTS = (
    "not mono",
    "not 16-bit",
    f"not sampled at {RATE:,} Hz",
    f"not {SAMPLES:,} samples long",
)


def speaker_of(path: str) -> str:
    """The speaker of a clip, from its name: word/speaker_nohash_0.wav."""
    return path.rpartition("/")[2].partition("_nohash_")[0]


def official_split(speaker: str) -> str:
    """training, validation or testing: the split of Speech Commands is a function of the speaker."""
    number = int(hashlib.sha1(speaker.encode(), usedforsecurity=False).hexdigest(), 16) % (_MOST_SPEAKERS + 1)
    percent = number * (100.0 / _MOST_SPEAKERS)
    return "validation" if percent < 10 else "testing" if percent < 20 else "training"
