"""Errors of data on disk, with the name of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_NAMED = 3  # in a message


class DataError(ValueError):
    """A file that is damaged, cannot be read, or cannot be written."""


class MissingDataError(DataError):
    """A set that is not there; the message names the files, their checksums and where to put them."""


def first_of(names: Sequence[str]) -> str:
    """The first names for a message, and whether there are more."""
    return ", ".join(names[:_NAMED]) + ", …" * (len(names) > _NAMED)


@contextmanager
def naming(path: Path, doing: str = "read") -> Iterator[None]:
    """Turns errors of the system (no permission, no space) into a DataError that names the file."""
    try:
        yield
    except OSError as wrong:
        raise DataError(f"cannot {doing} {path}: {wrong.strerror or wrong}") from wrong
