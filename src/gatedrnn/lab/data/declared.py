"""What a data set is: official files or a folder of them, declared as data."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gatedrnn.lab.data.errors import DataError, MissingDataError
from gatedrnn.lab.data.files import File, Found, copies
from gatedrnn.lab.data.places import data_folder
from gatedrnn.lab.data.trees import Tree


@dataclass(frozen=True)
class Checked:
    """The result of checking one file or folder: None if it is complete."""

    path: Path
    damage: str | None


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set by its official files. ``folders`` are looked through in this order, below the data folder."""

    name: str
    title: str
    licence: str
    folders: tuple[str, ...]
    files: tuple[File, ...]
    #: The unpacked form of a set, a folder of very many files.
    tree: Tree | None = None

    @property
    def contents(self) -> tuple[File, ...]:
        """The files that are read, unpacked, in the order in which they are declared."""
        return tuple(content for file in self.files for content in (file.members or (file,)))

    @property
    def size(self) -> int:
        """Of the official files, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def key(self) -> str:
        """Names what is made of these contents and no others."""
        text = "\n".join(f"{content.name} {content.size} {content.checksum}" for content in self.contents)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def places(self, root: Path) -> list[Path]:
        return [root / folder for folder in self.folders]

    def look(self, root: Path) -> tuple[list[Found], list[File]]:
        """The files to read, unpacked ones where all of them are there, and the official files that are missing."""
        found: list[Found] = []
        missing: list[File] = []
        for file in self.files:
            members = [next(copies(member, self.places(root)), None) for member in file.members]
            unpacked = [member for member in members if member is not None]
            packed = next(copies(file, self.places(root)), None)
            if file.members and len(unpacked) == len(file.members):
                found.extend(unpacked)
            elif packed is not None:
                found.append(packed)
            else:
                missing.append(file)
        return found, missing

    def find(self, root: Path) -> list[Found]:
        """The files to read, each of them checked. Raises MissingDataError if the set is not complete."""
        found, missing = self.look(root)
        if missing or not found:
            raise MissingDataError(self.missing_text(root, missing))
        for file in found:
            file.check()
        return found

    def where(self, root: Path) -> Path | None:
        """The folder of the complete set; None if something is missing. Nothing is checked."""
        tree = self.tree.found(root) if self.tree is not None else None
        if tree is not None:
            return tree
        found, missing = self.look(root)
        return found[0].path.parent if found and not missing else None

    def verify(self, root: Path) -> Iterator[Checked]:
        """Check all files of the set, packed and unpacked, in all its folders."""
        files = [file for official in self.files for file in (official, *official.members)]
        found = [copy for file in files for copy in copies(file, self.places(root))]
        for copy in {copy.path.resolve(): copy for copy in found}.values():
            yield _checked(copy.path, copy.check)
        if self.tree is not None and (folder := self.tree.found(root)) is not None:
            yield _checked(folder, partial(self.tree.verify, folder))

    def missing_text(self, root: Path, missing: list[File]) -> str:
        """One message for a set that is not there: what to do, and the files with checksums and addresses."""
        whole = len(missing) == len(self.files)
        first = f"{self.name} was not found in {root}." if whole else f"{self.name} is incomplete in {root}."
        if not any(file.address for file in missing):
            return f"{first}\n{self.by_hand(root, missing, 'Put')}"
        place = "" if root == data_folder() else f" --data {shlex.quote(str(root))}"
        command = f"To download {'it' if whole else 'the rest'}: gatedrnn data fetch {self.name}{place}"
        return f"{first} {command}\n{self.by_hand(root, missing, 'Or put')}"

    def by_hand(self, root: Path, missing: list[File], put: str) -> str:
        """Where to put which files; ``put`` is the first word."""
        lines = []
        if missing:
            lines.append(f"{put} these files into {self.places(root)[0]} (licence: {self.licence}):")
            put = "Or put"
        for file in missing:
            lines.append(f"  {file.described()}" + (f"  {file.address}" if file.address else ""))
            lines.extend(["    or unpacked:"] * bool(file.members))
            lines.extend(f"      {member.described()}" for member in file.members)
        if self.tree is not None:
            lines.append(f"{put} {self.tree.described()} into {root}.")
        return "\n".join(lines)


def _checked(path: Path, check: Callable[[], None]) -> Checked:
    try:
        check()
    except DataError as wrong:
        return Checked(path, str(wrong))
    return Checked(path, None)
