"""What the user got wrong, in one line."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - it is the user's, not the program's error
    """Ends a verb with one line on stderr and exit code 2."""
