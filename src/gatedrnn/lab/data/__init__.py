"""Data sets: found in a folder, checked against published checksums, and opened as tensors, text files or folders."""

from __future__ import annotations

from gatedrnn.lab.data.clips import Clips
from gatedrnn.lab.data.corpus import END_OF_LINE, UNKNOWN, Corpus, read_corpus
from gatedrnn.lab.data.declared import Checked, DataSet
from gatedrnn.lab.data.errors import DataError, MissingDataError
from gatedrnn.lab.data.fetching import Fetched, fetch
from gatedrnn.lab.data.image_sets import ImageSet
from gatedrnn.lab.data.opening import clips, images, speech_folder, text_files
from gatedrnn.lab.data.places import data_folder
from gatedrnn.lab.data.sets import SETS
from gatedrnn.lab.data.sound import SAMPLES, official_split, speaker_of
from gatedrnn.lab.data.speech import Say

__all__ = [
    "END_OF_LINE",
    "SAMPLES",
    "SETS",
    "UNKNOWN",
    "Checked",
    "Clips",
    "Corpus",
    "DataError",
    "DataSet",
    "Fetched",
    "ImageSet",
    "MissingDataError",
    "Say",
    "clips",
    "data_folder",
    "fetch",
    "images",
    "official_split",
    "read_corpus",
    "speaker_of",
    "speech_folder",
    "text_files",
]
