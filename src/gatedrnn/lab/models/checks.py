"""Checks of options that come from a command line, from Python, or from a file that may be damaged."""

from __future__ import annotations

import dataclasses
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from gatedrnn.lab.fields import check_known

__all__ = ["check_known", "check_types"]

_WORDS = {int: "an integer", float: "a number", str: "a string", bool: "true or false", NoneType: "None"}


def check_types(options: Any) -> None:
    """Raise ValueError that begins with the field's name where its value is not of the type that the field has."""
    hints = get_type_hints(type(options))
    for name, hint in ((field.name, hints[field.name]) for field in dataclasses.fields(options)):
        kinds = get_args(hint) if NoneType in get_args(hint) else (hint,)
        value = getattr(options, name)
        if not any(_is_a(value, kind) for kind in kinds):
            raise ValueError(f"{name} must be {' or '.join(map(_word, kinds))}, got {value!r}")


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) is tuple:  # of any length
        return isinstance(value, tuple | list) and all(_is_a(item, get_args(kind)[0]) for item in value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def _word(kind: Any) -> str:
    return f"a list, each {_word(get_args(kind)[0])}," if get_origin(kind) is tuple else _WORDS[kind]
