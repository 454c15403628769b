"""Declaring folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.changes import Entry

if TYPE_CHECKING:
    from tertulia.state.state import State

C = TypeVar("C", bound=Change)
R = TypeVar("R", bound=Struct)


class Folds(dict[type[Change], "Callable[[State, Entry], None]"]):
    """Folds by change."""

    def of(self, kind: type[C]) -> Callable[[Callable[[State, C], None]], None]:
        """Declare the function as the fold of that change."""

        def register(function: Callable[[State, C], None]) -> None:
            # Folds are looked up by the type of the change.
            self[kind] = lambda state, entry: function(state, entry.change)  # type: ignore[arg-type]

        return register

    def puts(self, kind: type[Change], table: str, field: str) -> None:
        """Declare that the change puts the record in its `field`, or each of them, into the table
        that is the state's attribute `table`."""
        self[kind] = lambda state, entry: _for_each(state, entry, table, "put", field)

    def removes(self, kind: type[Change], table: str, field: str) -> None:
        """Declare that the change removes the record with the key in its `field`, or several."""
        self[kind] = lambda state, entry: _for_each(state, entry, table, "remove", field)


def _for_each(state: State, entry: Entry, table: str, method: str, field: str) -> None:
    values = getattr(entry.change, field)
    for value in values if isinstance(values, tuple) else (values,):
        getattr(getattr(state, table), method)(value)


def revised(record: R, values: Mapping[str, Any]) -> R:
    """Return the record with new values, either as in memory or as in JSON."""
    fields = _fields(type(record))
    new = {}
    for name, value in values.items():
        field = fields[name]
        converted = msgspec.convert(value, field.type)
        # Defaults are omitted when the record is encoded, which compares by identity.
        new[name] = field.default if converted == field.default else converted
    return msgspec.structs.replace(record, **new)


_FIELDS: dict[type, dict[str, msgspec.structs.FieldInfo]] = {}


def _fields(kind: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    if kind not in _FIELDS:
        _FIELDS[kind] = {field.name: field for field in msgspec.structs.fields(kind)}
    return _FIELDS[kind]
