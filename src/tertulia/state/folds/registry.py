"""How a fold is declared, and what folds have in common."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tertulia.model.changes import Change, Entry
from tertulia.state.organization import State

C = TypeVar("C", bound=Change)
R = TypeVar("R", bound=Struct)


class Folds(dict[type[Change], Callable[[State, Entry], None]]):
    """The folds of one noun's changes."""

    def of(self, kind: type[C]) -> Callable[[Callable[[State, C], None]], None]:
        """Declare the function as the fold of that change."""

        def register(function: Callable[[State, C], None]) -> None:
            self[kind] = lambda state, entry: function(state, entry.change)  # type: ignore[arg-type]

        return register


def revised(record: R, values: Mapping[str, Any]) -> R:
    """The record with new values, which may be as they are in memory or as they are in JSON."""
    types = _field_types(type(record))
    return msgspec.structs.replace(
        record,
        **{name: msgspec.convert(value, types[name]) for name, value in values.items()},
    )


_TYPES: dict[type, dict[str, Any]] = {}


def _field_types(kind: type[Struct]) -> dict[str, Any]:
    if kind not in _TYPES:
        _TYPES[kind] = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return _TYPES[kind]
