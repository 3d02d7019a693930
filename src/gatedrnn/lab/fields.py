"""How a field of options enters the key of a run, so that a new option never changes the identity of old runs.

A plain field always enters. One made by :func:`added` came later: it enters only where it differs from its neutral
value, which means what was done before it existed. One made by :func:`beside` never enters, because the result does not
depend on it.

Beside that, the check of a name that all kinds of options have.
"""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

_NEUTRAL, _BESIDE = "neutral", "beside"
# How a field's type reads if it takes a float, as text or as a type.
_FLOATS = ("float", "float | None", "<class 'float'>", "Optional[float]", "typing.Optional[float]")
_EXACT = 2**53  # integers up to here are floats without a change


def added(default: Any, neutral: Any) -> Any:
    """A field that came after the first runs."""
    return dataclasses.field(default=default, metadata={_NEUTRAL: neutral})


def beside(default: Any) -> Any:
    """A field on which the result does not depend, up to the last bits of its sums."""
    return dataclasses.field(default=default, metadata={_BESIDE: True})


def plain(options: Any) -> dict[str, Any]:
    """All fields as JSON holds them: a tuple is a list, a path is a text.

    Raises ValueError that begins with the name of a field that JSON cannot hold.
    """
    values = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        try:
            values[field.name] = _json(value)
        except UnicodeEncodeError:
            raise ValueError(f"{field.name} must be text in UTF-8, got {value!r}") from None
        except TypeError:
            raise ValueError(
                f"{field.name} must be a number, a string, a path, true or false, None, or a list of these, "
                f"got {value!r}"
            ) from None
    return values


def keyed(options: Any) -> dict[str, Any]:
    """The fields that enter the key, as JSON holds them."""
    values = plain(options)
    return {
        field.name: values[field.name]
        for field in dataclasses.fields(options)
        if not field.metadata.get(_BESIDE)
        and (_NEUTRAL not in field.metadata or values[field.name] != _json(field.metadata[_NEUTRAL]))
    }


def made(kind: Any, values: dict[str, Any]) -> Any:
    """The options that :func:`plain` wrote. An option that was not there yet takes its neutral value.

    Raises ValueError for an option that is not known here.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in values:
        if name not in fields:
            known = f"; known options: {', '.join(fields)}" if fields else ", which has no options"
            raise ValueError(f"unknown option {name!r} of {kind.__name__}{known}")
    given = {name: _from_json(value, fields[name]) for name, value in values.items()}
    missing = {
        name: field.metadata[_NEUTRAL]
        for name, field in fields.items()
        if name not in given and _NEUTRAL in field.metadata
    }
    return kind(**given, **missing)


def is_beside(options: Any, name: str) -> bool:
    """Whether the options have this field, and the result does not depend on it."""
    return any(field.name == name and _BESIDE in field.metadata for field in dataclasses.fields(options))


def with_plain_numbers(options: Any) -> Any:
    """The options with Python's numbers in place of numpy's, which JSON cannot hold, and with a float where an integer
    was given for one: 1 and 1.0 are the same option."""
    others = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if _is_other_number(value):
            value = _json(value)
        if type(value) is int and str(field.type) in _FLOATS and abs(value) <= _EXACT:
            value = float(value)
        if value is not getattr(options, field.name):
            others[field.name] = value
    return dataclasses.replace(options, **others) if others else options


def check_known(option: str, value: str, known: Iterable[str]) -> None:
    """Raise ValueError that begins with the option's name where the value is none of the known names."""
    names = list(known)
    if value not in names:
        raise ValueError(f"{option} must be one of {', '.join(names)}, got {value!r}")


def _json(value: Any) -> Any:
    """Raises TypeError if JSON cannot hold the value, and UnicodeEncodeError for a path that is not UTF-8."""
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {_json(name): _json(item) for name, item in value.items()}
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        text.encode()
        return text
    if _is_other_number(value):
        return operator.index(value) if isinstance(value, Integral) else float(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise TypeError


def _is_other_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, int | float)


def _from_json(value: Any, field: dataclasses.Field[Any]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    kind = str(field.type)  # "Path | None": in most files an annotation is kept as text
    return Path(value) if isinstance(value, str) and "Path" in kind and "str" not in kind else value
