"""Wrong arguments in one line, in place of the parser's box of several."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Sequence
from typing import Any

import tyro

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.options import REGISTRY

# The parser passes on what Python's own conversions say; these say it to people.
_CONVERSIONS = (
    (r"Error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 must be a whole number, got \2"),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"\1 must be a number, got \2"),
    (r"Error parsing (\S+): (.*)", r"\1: \2"),
    (r"Missing value for argument '(\S+)'\. .*", r"\1 needs a value"),
    (r"Expected one of \{(.*)\}\.", r"one of these must follow: \1"),
    (r"Unrecognized options: (.*)", r"unknown: \1"),
    (r"Missing from gatedrnn (.*?): (.*)", r"\1 needs \2"),
    (r"Perhaps you meant: (.*)", r"perhaps you meant \1"),
    (r"Available subcommands: (.*)", r"known are \1"),
    (r"For full helptext, (?:run:?|see) (.*)", r"see \1"),
)


def parse(kind: Any, arguments: Sequence[str]) -> Any:
    """What tyro makes of the arguments. Raises Failure for wrong ones; help is printed and ends the program."""
    description = "Gated recurrent layers and their laboratory. --version tells which one this is."
    read = functools.partial(
        tyro.cli, kind, prog="gatedrnn", description=description, args=arguments, registry=REGISTRY
    )
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # no terminal: a box without colours
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return read()
    except SystemExit as end:
        if end.code != 2:
            return read()  # help, and now it is seen
        said.seek(0)
        raise Failure(_one_line(said.read())) from None


def _one_line(box: str) -> str:
    """The sections of the box, one after the other, without what repeats the help: that is indented twice."""
    sections = [""]
    for line in box.splitlines():
        text = line.strip("│").rstrip()
        indent, text = len(text) - len(text.lstrip()), text.strip()
        if line.startswith(("╭", "╰")) or (text and set(text) <= {"─"}):
            sections.append("")
        elif indent < 9:
            between = ", " if indent == 5 and not sections[-1].endswith(":") else " "
            sections[-1] = f"{sections[-1]}{between}{text}".strip()
    told = [section for section in sections if section and not section.startswith("Argument helptext")]
    return "; ".join(_translated(section) for section in told)


def _translated(section: str) -> str:
    for pattern, replacement in _CONVERSIONS:
        if re.fullmatch(pattern, section):
            return re.sub(pattern, replacement, section)
    return section
