"""Spoken words as a folder on disk, unpacked into the cache where only the archive is there."""

from __future__ import annotations

import csv
import hashlib
import os
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gatedrnn.lab.data.appearing import alone, appearing_folder
from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.errors import DataError, MissingDataError, naming
from gatedrnn.lab.data.files import Found
from gatedrnn.lab.data.places import cache_folder
from gatedrnn.lab.data.trees import Tree

_LIST = "unpacked.csv"  # path, size and sha256 of every file, written last
_LARGEST = 8 << 20  # bytes; the longest recording of noise has 3 MB


@dataclass(frozen=True, kw_only=True)
class SpeechData(DataSet):
    """A set of spoken words, which is read as a folder; with an archive or without."""

    tree: Tree = field()


def open_speech(data: SpeechData, root: Path) -> Path:
    """The folder of a set, checked."""
    folder = data.tree.found(root)
    if folder is not None:
        data.tree.check(folder)
        return folder
    found, missing = data.look(root)
    if not found:
        raise MissingDataError(data.missing_text(root, missing))
    (archive,) = found
    unpacked = cache_folder() / "prepared" / data.key
    if not _whole(unpacked):
        archive.check()
        with naming(unpacked, "write"), alone(unpacked):
            if not _whole(unpacked):  # another process may have unpacked it meanwhile
                with appearing_folder(unpacked) as folder:
                    _unpack(archive, data.tree, folder)
    return unpacked


def _unpack(archive: Found, tree: Tree, folder: Path) -> None:
    listed: dict[str, tuple[int, str]] = {}
    for name, content in _members(archive, tree):
        if name in listed:
            raise DataError(f"{archive.path} is damaged: {name} is in it twice")
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        listed[name] = (len(content), hashlib.sha256(content).hexdigest())
    try:
        tree.check(folder)
    except DataError as wrong:
        raise DataError(f"{archive.path} is damaged: {wrong}") from wrong
    with open(folder / _LIST, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows((name, *facts) for name, facts in listed.items())


def _members(archive: Found, tree: Tree) -> Iterator[tuple[str, bytes]]:
    """The files of the archive that belong to the set. A link, or a path out of the folder, is an error."""
    try:
        with tarfile.open(archive.path, "r|gz") as entries:
            for entry in entries:
                path = PurePosixPath(entry.name)
                if not (entry.isreg() or entry.isdir()) or path.is_absolute() or ".." in path.parts:
                    raise DataError(f"{archive.path} holds {entry.name!r}: a link, or a path out of its folder")
                if entry.isdir() or not tree.expects(str(path)):
                    continue
                if entry.size > _LARGEST:
                    raise DataError(
                        f"{archive.path} holds {path} of {entry.size:,} bytes, at most {_LARGEST:,} expected"
                    )
                stream = entries.extractfile(entry)
                assert stream is not None  # it is a regular file
                yield str(path), stream.read()
    except (tarfile.TarError, EOFError, zlib.error) as wrong:
        raise DataError(f"{archive.path} is damaged: {wrong}") from wrong


def _whole(folder: Path) -> bool:
    """Whether every file that was unpacked is there with its size."""
    with naming(folder):
        try:
            with open(folder / _LIST, encoding="utf-8", newline="") as stream:
                return all(os.stat(folder / name).st_size == int(size) for name, size, _ in csv.reader(stream))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
