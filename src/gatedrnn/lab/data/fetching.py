"""A whole set from its official addresses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gatedrnn.lab.data.declared import DataSet
from gatedrnn.lab.data.download import Patience, Progress, download
from gatedrnn.lab.data.errors import DataError, MissingDataError
from gatedrnn.lab.data.web import UnreachableError


@dataclass(frozen=True)
class Fetched:
    """Where the set is now, and what had to be downloaded for it."""

    folder: Path
    downloaded: tuple[Path, ...]


def fetch(data: DataSet, root: Path, progress: Progress, patience: Patience | None = None) -> Fetched:
    """Download what is missing of a set, and again what is damaged where downloads are put.

    Interrupted, the same call continues. Raises MissingDataError with what to do by hand where there is no network.
    """
    if data.tree is not None and (folder := data.tree.found(root)) is not None:
        data.tree.check(folder)
        return Fetched(folder, ())
    if not data.files:
        raise MissingDataError(data.missing_text(root, []))
    wanted = {file: data.places(root)[0] / file.name for file in data.files}
    found, missing = data.look(root)
    for copy in found:
        try:
            copy.check()
        except DataError as wrong:
            if wanted.get(copy.file) != copy.path:
                raise DataError(f"{wrong}; remove it and run the same command again") from wrong
            missing.append(copy.file)
    for file in missing:
        try:
            download(file, wanted[file], progress, patience or Patience())
        except UnreachableError as wrong:
            by_hand = data.by_hand(root, missing, "Run the same command to try again, or put")
            raise MissingDataError(f"{wrong}\n{by_hand}") from wrong
    folder = data.where(root)
    assert folder is not None  # nothing is missing any more
    return Fetched(folder, tuple(wanted[file] for file in missing))
