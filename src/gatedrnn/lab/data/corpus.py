"""Text as numbers: the words of three files, and the vocabulary of the first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gatedrnn.lab.data.errors import DataError
from gatedrnn.lab.data.text import SPLITS

END_OF_LINE, UNKNOWN = "<eos>", "<unk>"
# Some editors begin a file with it; it is not part of the text. With the codec utf-8-sig, the position of a wrong byte
# would be counted from behind it.
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Corpus:
    """Words are separated by white space; each line ends with the word <eos>. A word is its place in ``words``."""

    #: The words of the training text, in the order in which they first occur there.
    words: tuple[str, ...]
    #: One tensor of places for each of SPLITS.
    texts: Mapping[str, Tensor]

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each word."""
        return {word: place for place, word in enumerate(self.words)}

    def counts(self, *splits: str) -> Tensor:
        """How often each word occurs in these texts together."""
        return torch.stack([torch.bincount(self.texts[split], minlength=len(self.words)) for split in splits]).sum(0)

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """A digest of the vocabulary, and of each text."""
        contents = {"vocabulary": "\n".join(self.words).encode()}
        contents |= {split: text.numpy().tobytes() for split, text in self.texts.items()}
        return {name: hashlib.sha256(content).hexdigest()[:16] for name, content in contents.items()}


def read_corpus(paths: Mapping[str, Path]) -> Corpus:
    """The files of SPLITS. A word that the training text does not have is <unk>, if that is one of its words.

    Raises DataError for a file that cannot be read, is empty or not UTF-8, or has a word that nothing stands for.
    """
    texts = {split: _words(paths[split]) for split in SPLITS}
    vocabulary = tuple(dict.fromkeys(texts["train"]))
    places = {word: place for place, word in enumerate(vocabulary)}
    unknown = places.get(UNKNOWN)
    numbers = {}
    for split, words in texts.items():
        if unknown is None and (strange := next((word for word in words if word not in places), None)) is not None:
            raise DataError(
                f"{paths[split]}, line {_line_of(words, strange)}: the word {strange[:40]!r} is not in "
                f"{paths['train']}, which has no {UNKNOWN} either; write {UNKNOWN} for rare words in all files"
            )
        found = (places.get(word, unknown) for word in words)
        numbers[split] = torch.from_numpy(np.fromiter(found, dtype=np.int64, count=len(words)))
    return Corpus(vocabulary, numbers)


def _words(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode().removeprefix(_BYTE_ORDER_MARK)
    except OSError as wrong:
        raise DataError(f"{path} cannot be read: {wrong.strerror or wrong}") from wrong
    except UnicodeDecodeError as wrong:
        raise DataError(f"{path} is not UTF-8 text: byte {wrong.object[wrong.start]:#04x} at {wrong.start}") from None
    if not text.strip():
        raise DataError(f"{path} is empty")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [*text.removesuffix("\n").replace("\n", f" {END_OF_LINE} ").split(), END_OF_LINE]


def _line_of(words: list[str], strange: str) -> int:
    return 1 + words[: words.index(strange)].count(END_OF_LINE)
