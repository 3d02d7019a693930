"""Wrong arguments end in one line, instead of the parser's box of several lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NoReturn

import tyro

# The parser's hook for errors. It is private to tyro, and so pyproject.toml names one version of tyro.
import tyro._errors as parser_errors

from gatedrnn.cli.failure import Failure
from gatedrnn.cli.options import REGISTRY

_SIMILAR = 0.8  # of 1; the parser's own threshold for a misspelt option


@dataclass(frozen=True)
class Commands:
    """Names of which one must be given: what such a name is called, and for each its commands or its options."""

    word: str
    names: Mapping[str, Commands | Sequence[str]]


def parse(kind: Any, arguments: Sequence[str], commands: Commands | Sequence[str]) -> Any:
    """The object of this kind that the arguments describe. Raises Failure for wrong ones; help is printed and ends the
    program."""
    path, options = _path(arguments, commands)

    def refuse(event: parser_errors.ParseErrorEvent) -> NoReturn:
        raise Failure(f"{_message(event, path, options)}; {_help(path)}")

    description = "Gated recurrent layers and their laboratory. --version prints the version."
    with parser_errors.on_parse_error(refuse):
        return tyro.cli(kind, prog="gatedrnn", description=description, args=arguments, registry=REGISTRY)


def _path(arguments: Sequence[str], commands: Commands | Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """The commands that the arguments begin with, and their options. Raises Failure for a missing or unknown one."""
    path: list[str] = []
    while isinstance(commands, Commands):
        given = arguments[len(path)] if len(path) < len(arguments) else None
        if given in ("-h", "--help"):
            return path, ()
        word, known = commands.word, f"choose from {', '.join(commands.names)}"
        if given is None or given.startswith("-"):
            before = "" if given is None else f" before {given}"
            raise Failure(f"missing {word}{before}; {known}; {_help(path)}")
        if given not in commands.names:
            raise Failure(f"unknown {word} {given!r}; {known}; {_help(path)}")
        path.append(given)
        commands = commands.names[given]
    return path, commands


def _help(path: Sequence[str]) -> str:
    return f"see {shlex.join(['gatedrnn', *path])} --help"


def _message(event: parser_errors.ParseErrorEvent, path: Sequence[str], options: Iterable[str]) -> str:
    if isinstance(event, parser_errors.MissingArgs):
        needed = [_name(missing.arg, with_kind=True) for missing in event.missing_arguments]
        unknown = [_unknown(event.unrecognized_tokens, options)] if event.unrecognized_tokens else []
        return "; ".join([f"{' '.join(path)} needs {', '.join(needed)}", *unknown])
    if isinstance(event, parser_errors.UnrecognizedArgs):
        return _unknown(event.tokens, options)
    if isinstance(event, parser_errors.InvalidChoice):
        choices = ", ".join(map(repr, event.choices))
        return f"{_name(event.argument)} must be one of {choices}, got {event.value!r}"
    if isinstance(event, parser_errors.BadValue) and event.argument.is_positional():
        return f"{' '.join(path)} needs {_name(event.argument)}"
    if isinstance(event, parser_errors.BadValue):
        return f"{_name(event.argument)} needs a value"
    if isinstance(event, parser_errors.InstantiationFailure):
        return event.message if event.argument is None else f"{_name(event.argument)} {event.message}"
    return f"wrong arguments ({type(event).__name__})"  # of kinds that these options do not have


def _name(argument: Any, with_kind: bool = False) -> str:
    """The argument as it is written: --out, or --out PATH with its kind. A positional one has only its kind."""
    kind = str(argument.lowered.metavar)
    if argument.is_positional():
        return kind
    return f"{argument.display_name()} {kind}" if with_kind else str(argument.display_name())


def _unknown(tokens: Sequence[str], options: Iterable[str]) -> str:
    misspelt = [token.partition("=")[0] for token in tokens if token.startswith("--")]
    meant = [option for option in options if any(_similar(option, token) for token in misspelt)]
    hint = f"; perhaps you meant {' or '.join(meant)}" if meant else ""
    return f"unrecognized arguments: {', '.join(tokens)}{hint}"


def _similar(option: str, token: str) -> bool:
    return SequenceMatcher(a=token, b=option).ratio() >= _SIMILAR or (len(token) > 4 and option.endswith(token[2:]))
