"""Without root's rights: root may read and write everywhere, and many machines test as root."""

from __future__ import annotations

import codecs
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


def said_without_rights(function: Callable[[], object]) -> str:
    """What the function raises, as "Kind: text", in a child process that is nobody's if this one is root's."""
    codecs.lookup("cp437")  # zipfile asks for it late, when the child may have no right to import any more
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads; the child does nothing with them
        child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
            os.write(writing, _said(function).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    return said


def _said(function: Callable[[], object]) -> str:
    try:
        function()
    except Exception as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return "nothing"


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter and write to, which pytest's are not."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o777)
        yield folder
    finally:
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o777)
        shutil.rmtree(folder)
