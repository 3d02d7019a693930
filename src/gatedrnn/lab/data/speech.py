"""Spoken words as a folder on disk, unpacked into the cache where only the archive is there."""

from __future__ import annotations

import csv
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gatedrnn.lab.data.appearing import alone, appearing_folder
from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.errors import DataError, MissingDataError, naming
from gatedrnn.lab.data.files import Found
from gatedrnn.lab.data.places import cache_folder
from gatedrnn.lab.data.trees import Tree, clip_names

_LIST = "unpacked.csv"  # path, size and sha256 of every file, written last
_LARGEST = 8 << 20  # bytes; the longest recording of noise has 3 MB
_REPORTED = 10_000  # files between two reports

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SpeechData(DataSet):
    """A set of spoken words, which is read as a folder; with an archive or without."""

    tree: Tree = field()


@dataclass(frozen=True)
class SpeechFolder:
    """The folder of a set."""

    path: Path
    #: Of what was unpacked into the cache, the sha256 of every file. None for a folder of the user's.
    checksums: Mapping[str, str] | None = None

    def clips(self, word: str) -> list[str]:
        """The sound files of a word, as "word/file.wav"."""
        if self.checksums is None:
            return [f"{word}/{name}" for name in clip_names(self.path / word)]
        return [path for path in self.checksums if path.startswith(f"{word}/")]


def open_speech(data: SpeechData, root: Path, say: Say = lambda text: None) -> Path:
    """The folder of a set, checked. ``say`` is called with the progress."""
    return find_speech(data, root, say).path


def find_speech(data: SpeechData, root: Path, say: Say, compared: Collection[str] = ()) -> SpeechFolder:
    """The same with what is known of its files. Of those in the cache the sizes are checked, and where they are of the
    words ``compared`` also the checksums."""
    folder = data.tree.found(root)
    if folder is not None:
        data.tree.check(folder)
        return SpeechFolder(folder)
    found, missing = data.look(root)
    if not found:
        raise MissingDataError(data.missing_text(root, missing))
    (archive,) = found
    unpacked = cache_folder() / "prepared" / data.key
    checksums = _whole(unpacked, data.tree, compared)
    if checksums is None:
        say(f"checking {archive.path.name}")
        archive.check()
        with naming(unpacked, "write"), alone(unpacked):
            checksums = _whole(unpacked, data.tree, compared)  # another process may have unpacked it meanwhile
            if checksums is None:
                with appearing_folder(unpacked) as new:
                    checksums = _unpack(archive, data.tree, new, say)
    return SpeechFolder(unpacked, checksums)


def _unpack(archive: Found, tree: Tree, folder: Path, say: Say) -> dict[str, str]:
    """Writes the files and the list of them; returns their checksums."""
    listed: dict[str, tuple[int, str]] = {}
    for name, content in _members(archive, tree):
        if len(listed) % _REPORTED == 0:
            say(f"unpacking {archive.path.name}, once: {len(listed):,} files")
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
    say(f"unpacked {len(listed):,} files")
    return {name: checksum for name, (_, checksum) in listed.items()}


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


def _whole(folder: Path, tree: Tree, compared: Collection[str]) -> dict[str, str] | None:
    """The checksums of what was unpacked. None if a file is not there with its size, or one of these words is not what
    was unpacked."""
    checksums = {}
    with naming(folder):
        try:
            with open(folder / _LIST, encoding="utf-8", newline="") as stream:
                for name, size, checksum in csv.reader(stream):
                    if os.stat(folder / name).st_size != int(size):
                        return None
                    if name.partition("/")[0] in compared and _sha256(folder / name) != checksum:
                        return None
                    checksums[name] = checksum
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
            return None
    return checksums if tree.complete(checksums) else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
