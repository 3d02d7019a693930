"""Text as files on disk, one for each split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gatedrnn.lab.data.appearing import alone, appearing
from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.errors import DataError, naming
from gatedrnn.lab.data.files import File, Found
from gatedrnn.lab.data.places import cache_folder

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True)
class TextData(DataSet):
    """A set of text: its contents are the files of SPLITS, in this order."""

    #: Published: words of each split, with one <eos> for each line, and how many different ones there are.
    tokens: tuple[int, int, int]
    vocabulary: int


def open_text(data: TextData, root: Path) -> dict[str, Path]:
    """The files of a set by split, checked; out of an archive they are unpacked into the cache."""
    paths: dict[File, Path] = {}
    for found in data.find(root):
        if found.file.members:
            paths |= _unpacked(found, cache_folder() / "prepared" / data.key)
        else:
            paths[found.file] = found.path
    return {split: paths[content] for split, content in zip(SPLITS, data.contents, strict=True)}


def _unpacked(archive: Found, folder: Path) -> dict[File, Path]:
    paths = {member: folder / member.name for member in archive.file.members}
    if not all(_whole(member, path) for member, path in paths.items()):
        with naming(folder, "write"), alone(folder):
            folder.mkdir(exist_ok=True)
            for member, content in archive.contents():
                with naming(paths[member], "write"), appearing(paths[member]) as stream:
                    stream.write(content)
    return paths


def _whole(file: File, path: Path) -> bool:
    """Whether it is there and undamaged; what is not is unpacked again."""
    try:
        Found(file, path).check()
    except DataError:
        return False
    return True
