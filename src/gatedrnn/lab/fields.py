"""How a field of options enters the key of a run, so that a new option never changes the identity of old runs.

A plain field always enters. One made by :func:`added` came later: it enters only where it differs from its neutral
value, which means what was done before it existed. One made by :func:`beside` never enters, because the result does not
depend on it.

Beside that, the check of a name that all kinds of options have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

_NEUTRAL, _BESIDE = "neutral", "beside"


def added(default: Any, neutral: Any) -> Any:
    """A field that came after the first runs."""
    return dataclasses.field(default=default, metadata={_NEUTRAL: neutral})


def beside(default: Any) -> Any:
    """A field on which the result does not depend, up to the last bits of its sums."""
    return dataclasses.field(default=default, metadata={_BESIDE: True})


def plain(options: Any) -> dict[str, Any]:
    """All fields as JSON holds them: a tuple is a list."""
    return {field.name: _json(getattr(options, field.name)) for field in dataclasses.fields(options)}


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
            raise ValueError(f"unknown option {name!r} of {kind.__name__}; known options: {', '.join(fields)}")
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    missing = {
        name: field.metadata[_NEUTRAL]
        for name, field in fields.items()
        if name not in given and _NEUTRAL in field.metadata
    }
    return kind(**given, **missing)


def check_known(option: str, value: str, known: Iterable[str]) -> None:
    """Raise ValueError that begins with the option's name where the value is none of the known names."""
    names = list(known)
    if value not in names:
        raise ValueError(f"{option} must be one of {', '.join(names)}, got {value!r}")


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
