"""How the fields of the option dataclasses are shown and read: their real defaults, None only where it can be written,
and a plain error for a value of the wrong type."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Annotated, Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

#: tyro's rules, and the two below before them.
REGISTRY = ConstructorRegistry()
_asking_tyro = False
# What a field of these types takes, in words; tyro would show the errors of Python's conversions.
_EXPECTED = {
    "INT": "an integer",
    "FLOAT": "a number",
    "{None}|FLOAT": "a number or None",
    "{[INT [INT ...]]}": "integers",
}


@REGISTRY.struct_rule
def _dataclass(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields as tyro makes them. A default of None means "not given": it is not offered as a value, and the
    field's docstring names the effective default."""
    global _asking_tyro
    if _asking_tyro or not dataclasses.is_dataclass(info.type):
        return None
    _asking_tyro = True
    try:
        spec = ConstructorRegistry.get_struct_spec(info)
    finally:
        _asking_tyro = False
    if not isinstance(spec, StructConstructorSpec):
        return None
    return dataclasses.replace(spec, fields=tuple(map(_shown, spec.fields)))


@REGISTRY.primitive_rule
def _value(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """The value as tyro makes it, with a better error."""
    global _asking_tyro
    if _asking_tyro:
        return None
    _asking_tyro = True
    try:
        spec = ConstructorRegistry.get_primitive_spec(info)
    finally:
        _asking_tyro = False
    if not isinstance(spec, PrimitiveConstructorSpec):
        return None
    make = spec.instance_from_str

    def value(words: list[str]) -> Any:
        try:
            return make(words)
        except ValueError as wrong:
            raise ValueError(_expectation(spec.metavar, words)) from wrong

    return dataclasses.replace(spec, instance_from_str=value)


def _expectation(metavar: str, words: list[str]) -> str:
    digits = sys.get_int_max_str_digits()
    if any(word.isdigit() and len(word) > digits for word in words):
        return f"must have at most {digits} digits"
    return f"must be {_EXPECTED.get(metavar, metavar)}, got {', '.join(map(repr, words))}"


def _shown(field: StructFieldSpec) -> StructFieldSpec:
    kind: Any = field.type
    if field.default is None:
        marker: Any = tyro.conf.DisallowNone
        kind = marker[Annotated[kind, tyro.conf.arg(help_behavior_hint="")]]
    return dataclasses.replace(field, type=kind, helptext=lambda: _one_line(field.helptext))


def _one_line(text: str | Callable[[], str | None] | None) -> str | None:
    """tyro keeps the line breaks of an indented docstring."""
    text = text() if callable(text) else text
    return None if text is None else " ".join(text.split())
