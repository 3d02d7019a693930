"""``gatedrnn data``: list, download and check data sets."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.progress import console_of, draws_bars, print_line
from gatedrnn.cli.streams import printable

if TYPE_CHECKING:
    from gatedrnn.lab.data import DataSet
    from gatedrnn.lab.data.download import Progress as ProgressFunction

_SILENCE = 10.0  # seconds, the longest without a line where there is no bar


@dataclass(frozen=True)
class ListSets:
    """List the data sets with their licence, size and location."""

    data: Path | None = None
    """Folder of the data sets. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    def run(self) -> None:
        """Print a table."""
        from gatedrnn.lab.data import SETS, DataError, data_folder

        root = data_folder(self.data)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("name", "what it is", "licence", "download", "where"):
            table.add_column(column, overflow="fold", no_wrap=column == "name")
        for data in SETS.values():
            try:
                where = _where(data, root)
            except DataError as wrong:
                where = str(wrong)
            cells = (data.name, data.title, data.licence, _megabytes(data.size) if data.size else "–", where)
            table.add_row(*(Text(printable(cell)) for cell in cells))
        console = console_of("stdout")
        console.print(table)
        print_line(console, f"data folder: {root}")


@dataclass(frozen=True)
class FetchSet:
    """Download a data set from its official address. Ctrl-C stops it; run the same command to resume."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Name of the set (see: gatedrnn data list)."""
    data: Path | None = None
    """Folder of the data sets. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    def run(self) -> None:
        """Download the missing files and print the folder."""
        from gatedrnn.lab.data import DataError, data_folder, fetch

        data = _set(self.name)
        try:
            with shown() as progress:
                fetched = fetch(data, data_folder(self.data), progress)
        except DataError as wrong:
            raise Failure(str(wrong), code=1, several_lines=True) from wrong
        except KeyboardInterrupt:
            print("stopped: downloaded data kept, run the same command to resume", file=sys.stderr)
            raise
        count = len(fetched.downloaded)
        done = f"{count} file{'s' * (count != 1)} downloaded and verified" if count else "present and verified"
        print(f"{data.name}: {done} in {fetched.folder} (licence: {data.licence})")


@dataclass(frozen=True)
class VerifySets:
    """Check all files of a data set, or of all sets, against their published checksums."""

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")] = None
    """Name of the set. (default: all sets present)"""
    data: Path | None = None
    """Folder of the data sets. (default: the environment variable GATEDRNN_DATA, else gatedrnn/data in the user's
    cache)"""

    def run(self) -> None:
        """Print a line for each file. Damage, or a file that is missing, ends with exit code 1."""
        from gatedrnn.lab.data import SETS, data_folder

        root = data_folder(self.data)
        chosen = list(SETS.values()) if self.name is None else [_set(self.name)]
        results = [result for data in chosen for result in self._verify(data, root)]
        wrong = results.count(False)
        if wrong:
            raise Failure(f"{wrong} of {len(results)} damaged or missing", code=1)
        print(f"{len(results)} checked, none damaged" if results else f"no data sets in {root}")

    def _verify(self, data: DataSet, root: Path) -> Iterator[bool]:
        """Print the result; return whether all is well."""
        from gatedrnn.lab.data import DataError

        try:
            anything = self.name is not None
            for checked in data.verify(root):
                anything = True
                print(f"{data.name}: {checked.damage or f'{checked.path} ok'}")
                yield checked.damage is None
            if anything and data.where(root) is None:
                print(data.missing_text(root, data.look(root)[1]))
                yield False
        except DataError as wrong:
            print(f"{data.name}: {wrong}")
            yield False


#: The commands below ``gatedrnn data``.
BELOW_DATA = {"list": ListSets, "fetch": FetchSet, "verify": VerifySets}


@dataclass(frozen=True)
class Data:
    """Data sets: gatedrnn data list, gatedrnn data fetch NAME, gatedrnn data verify [NAME]."""

    job: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[ListSets, tyro.conf.subcommand("list")]
            | Annotated[FetchSet, tyro.conf.subcommand("fetch")]
            | Annotated[VerifySets, tyro.conf.subcommand("verify")]
        ]
    ]

    def run(self) -> None:
        """Do one of the three."""
        self.job.run()


@contextmanager
def shown(console: Console | None = None) -> Iterator[ProgressFunction]:
    """A progress function for the downloads inside the ``with``. Writes to stderr."""
    console = console or console_of("stderr")
    if not draws_bars(console):
        yield _lines(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        yield draw


def _lines(console: Console) -> ProgressFunction:
    """The first and the last progress of a file, and every few seconds in between."""
    said: dict[str, float] = {}

    def say(name: str, done: int, total: int) -> None:
        if done == total or time.monotonic() - said.get(name, -_SILENCE) >= _SILENCE:
            said[name] = time.monotonic()
            print_line(console, f"{name}: {_megabytes(done)} of {_megabytes(total)}")

    return say


def _set(name: str) -> DataSet:
    from gatedrnn.lab.data import SETS

    if name not in SETS:
        raise Failure(f"NAME must be one of {', '.join(SETS)}, got {name!r}")
    return SETS[name]


def _where(data: DataSet, root: Path) -> str:
    folder = data.where(root)
    if folder is not None:
        return str(folder)
    found, missing = data.look(root)
    return f"incomplete: {', '.join(file.name for file in missing)} missing" if found else "–"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
