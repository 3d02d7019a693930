"""Errors of the user, in one line."""

from __future__ import annotations

import dataclasses
import errno
from typing import Any

# Errors of a full or failing disk, which often do not name the file.
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)


class Failure(Exception):  # noqa: N818 - it is the user's, not the program's error
    """Ends a verb with one line on stderr and an exit code: 2 for a wrong argument, 1 for work that failed.

    A text that lists files, of our own making, may have several lines.
    """

    def __init__(self, text: str, code: int = 2, several_lines: bool = False) -> None:
        super().__init__(text)
        self.code, self.several_lines = code, several_lines


def is_of_disk(wrong: BaseException) -> bool:
    """Whether a full or failing disk is the reason, and not a wrong argument."""
    return isinstance(wrong, OSError) and wrong.errno in _OF_DISK


def code_of(wrong: BaseException) -> int:
    """The exit code for what could not be written, or not be done with the arguments."""
    return 1 if is_of_disk(wrong) else 2


def as_option(wrong: ValueError, *options: Any) -> str:
    """The error's text; where it begins with the name of an option, as one writes it: --hidden-size."""
    name, _, rest = str(wrong).partition(" ")
    if any(name == field.name for option in options for field in dataclasses.fields(option)):
        return f"--{name.replace('_', '-')} {rest}"
    return str(wrong)
