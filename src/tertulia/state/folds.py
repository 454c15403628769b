"""Folding entries of the log into the state, and declaring folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.changes import Entry

if TYPE_CHECKING:
    from tertulia.state.state import State

C = TypeVar("C", bound=Change)
R = TypeVar("R", bound=Struct)


Fold = Callable[["State", Entry], None]


class Folds(dict[type[Change], Fold]):
    """The fold of each kind of change. The nouns' modules declare theirs."""

    def of(self, kind: type[C]) -> Callable[[Callable[[State, C], None]], None]:
        """Declare the function as the fold of that change."""

        def register(function: Callable[[State, C], None]) -> None:
            # Folds are looked up by the type of the change.
            self[kind] = lambda state, entry: function(state, entry.change)  # type: ignore[arg-type]

        return register

    def puts(self, kind: type[Change], table: str, field: str) -> None:
        """Declare that the change puts the record in its `field`, or each of them, into the table
        that is the state's attribute `table`."""

        def put(state: State, entry: Entry) -> None:
            for record in _each(getattr(entry.change, field)):
                getattr(state, table).put(record)

        self[kind] = put

    def removes(self, kind: type[Change], table: str, field: str) -> None:
        """Declare that the change removes the record with the key in its `field`, or several."""

        def remove(state: State, entry: Entry) -> None:
            for key in _each(getattr(entry.change, field)):
                getattr(state, table).remove(key)

        self[kind] = remove

    def revises(
        self,
        kind: type[C],
        table: str,
        field: str,
        values: Callable[[C], Mapping[str, Any]] = attrgetter("values"),
    ) -> None:
        """Declare that the change gives `values` to the record with the key in its `field`, or to
        several."""

        @self.of(kind)
        def _(state: State, change: C) -> None:
            records = getattr(state, table)
            for key in _each(getattr(change, field)):
                records.put(revised(records[key], values(change)))


FOLDS: Final = Folds()


def fold(state: State, entry: Entry) -> None:
    """Fold the next entry into the state. Nothing else writes to the state."""
    if entry.seq != state.seq + 1:
        raise ValueError(f"entry {entry.seq} cannot follow {state.seq}")
    state.unread.seq = entry.seq
    FOLDS[type(entry.change)](state, entry)
    state.remember_gains(entry)
    state.seq = entry.seq


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def revised(record: R, values: Mapping[str, Any]) -> R:
    """Return the record with new values, given as in memory or as in JSON."""
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
