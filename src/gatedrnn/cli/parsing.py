"""Wrong arguments in one line, in place of the parser's box of several."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.options import REGISTRY

# The parser passes on what Python's own conversions say; these say it to people.
_NO_TYPE = r"Error parsing (\S+): no type matching "
_CONVERSIONS = (
    (r"Error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 must be a whole number, got \2"),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"\1 must be a number, got \2"),
    (r"Error parsing (\S+): Exceeds the limit \((\d+) digits\).*", r"\1 must have fewer than \2 digits"),
    (_NO_TYPE + r"INT could be instantiated from \[(.*?)\].*", r"\1 must be a whole number, got \2"),
    (_NO_TYPE + r"FLOAT could be instantiated from \[(.*?)\].*", r"\1 must be a number, got \2"),
    (_NO_TYPE + r"\{None\}\|FLOAT could be instantiated from \[(.*?)\].*", r"\1 must be a number or None, got \2"),
    (_NO_TYPE + r"\{\[INT .*? from \[(.*?)\].*", r"\1 must be whole numbers, got \2"),
    (r"Error parsing (\S+): (.*)", r"\1: \2"),
    (r"invalid choice (.*) for argument '(\S+)'\. Expected one of \((.*)\) ?\.", r"\2 must be one of \3, got \1"),
    (r"Missing value for argument '(\S+)'\. .*", r"\1 needs a value"),
    (r"Unrecognized options: (.*)", r"unknown: \1"),
    (r"Missing from gatedrnn (.*?): (.*)", r"\1 needs \2"),
    (r"Perhaps you meant: (.*)", r"perhaps you meant \1"),
)
_HELP = "For full helptext, "


@dataclass(frozen=True)
class Commands:
    """Names of which one must be given: what such a name is called, and for each the names that may follow it."""

    word: str
    names: Mapping[str, Commands | None]


def parse(kind: Any, arguments: Sequence[str], commands: Commands) -> Any:
    """What tyro makes of the arguments. Raises Failure for wrong ones; help is printed and ends the program."""
    path = _path(arguments, commands)
    description = "Gated recurrent layers and their laboratory. --version prints the version."
    read = functools.partial(
        tyro.cli, kind, prog="gatedrnn", description=description, args=arguments, registry=REGISTRY
    )
    # No terminal: a box without colours. Arguments may hold bytes that are no letters.
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return read()
    except SystemExit as end:
        wrong = end.code == 2
    if wrong:
        said.seek(0)
        raise Failure(f"{_one_line(said.read())}; {_help(path)}")
    return read()  # help, and now it is seen


def _path(arguments: Sequence[str], commands: Commands | None) -> list[str]:
    """The commands that the arguments begin with. Raises Failure where one is missing or unknown."""
    path: list[str] = []
    while commands is not None:
        given = arguments[len(path)] if len(path) < len(arguments) else None
        if given in ("-h", "--help"):
            break
        word, known = commands.word, f"the {commands.word}s are {', '.join(commands.names)}"
        if given is None or given.startswith("-"):
            before = "" if given is None else f" before {given}"
            raise Failure(f"no {word} given{before}; {known}; {_help(path)}")
        if given not in commands.names:
            raise Failure(f"unknown {word} {given!r}; {known}; {_help(path)}")
        path.append(given)
        commands = commands.names[given]
    return path


def _help(path: Sequence[str]) -> str:
    return f"see {' '.join(['gatedrnn', *path])} --help"


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
    told = [section for section in sections if section and not section.startswith(("Argument helptext", _HELP))]
    return "; ".join(_translated(section) for section in told)


def _translated(section: str) -> str:
    for pattern, replacement in _CONVERSIONS:
        if re.fullmatch(pattern, section):
            return re.sub(pattern, replacement, section)
    return section
