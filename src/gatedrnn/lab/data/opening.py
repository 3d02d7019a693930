"""The data sets by name, opened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gatedrnn.lab.data.clips import Clips, open_clips
from gatedrnn.lab.data.image_formats import ImageData
from gatedrnn.lab.data.image_sets import ImageSet, open_images
from gatedrnn.lab.data.places import data_folder
from gatedrnn.lab.data.sets import known
from gatedrnn.lab.data.speech import Say, SpeechData, open_speech
from gatedrnn.lab.data.text import TextData, open_text


def images(name: str, root: Path | None = None) -> ImageSet:
    """The images of a set, checked, as tensors that are mapped from a file and loaded page by page as they are read.

    ``root`` is the data folder; None for GATEDRNN_DATA or the user's cache. The tensors are private: what is written to
    them does not reach the file. Raises DataError that names a damaged file, MissingDataError if the set is not there.
    """
    return open_images(known(name, ImageData), data_folder(root))


def text_files(name: str, root: Path | None = None) -> dict[str, Path]:
    """The files of a set of text, checked: ``train``, ``valid``, ``test``. Arguments and errors as for ``images``."""
    return open_text(known(name, TextData), data_folder(root))


def speech_folder(root: Path | None = None, subset: bool = False, say: Say = lambda text: None) -> Path:
    """The folder of Speech Commands v0.02, or of the small subset of v0.01, checked. Errors as for ``images``.

    An archive is unpacked into the cache the first time. ``say`` is called with the progress. Results on
    the subset are not those of the benchmark.
    """
    return open_speech(_speech(subset), data_folder(root), say)


def clips(words: Sequence[str], root: Path | None = None, subset: bool = False, say: Say = lambda text: None) -> Clips:
    """The clips of some words that are 16,000 samples long, as one tensor that is mapped from a file, and the names of
    all others with what is wrong with them. ``say`` is called with the progress. Otherwise as above.
    """
    return open_clips(_speech(subset), data_folder(root), words, say)


def _speech(subset: bool) -> SpeechData:
    return known("speech_commands_10_small" if subset else "speech_commands", SpeechData)
