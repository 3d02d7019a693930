"""How the fields of the option dataclasses are shown: their real defaults, and None only where it can be written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

#: tyro's rules, and the one below before them.
REGISTRY = ConstructorRegistry()
_asking_tyro = False


@REGISTRY.struct_rule
def _dataclass(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields as tyro makes them. Where None is the default, it means "not given": it is not offered as a value, and
    what it stands for is said by the field's docstring."""
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
