"""Nouns that administrators manage. Each is a declaration, from which a group of commands is made.
The settings and the values that they accept follow from the parameters that the API's endpoints
declare. A declaration adds only what is easier to type and to read."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any

import typer

from tertulia.cli import assignments
from tertulia.cli.accounts import id_in
from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Act, Column, Printed, cells_of, command, done, group, listing
from tertulia.cli.errors import UsageError
from tertulia.cli.tables import cell, contains, facts
from tertulia.model.errors import Refused
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.http.parameters import call_endpoint, declared

Endpoint = Callable[..., Awaitable[Any]]
"""A function of a caller and of the parameters that it declares."""
Typed = Mapping[str, str]
"""Typed values by name."""
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[WORD]…", help="Show only entries that contain all of these words."),
]


def by_id(table: str) -> Callable[[State], Sequence[Any]]:
    """Return a function that returns all records of one of the state's tables, by ID."""
    return lambda state: sorted(getattr(state, table), key=attrgetter("id"))


def fields(*names: str, **renamed: str) -> Callable[[State, Any], dict[str, Shown]]:
    """Return a function that returns these attributes of a record, some of them under another
    name."""
    shown = {**{name: name for name in names}, **renamed}
    return lambda _, record: {name: getattr(record, field) for name, field in shown.items()}


# Typer reads a command's parameters from its annotations, which are made here for each noun. The
# type checker doesn't accept such values as types.


class ManagedNoun:
    """A noun, and the group of its commands (`app`)."""

    def __init__(
        self,
        name: str,
        about: str,
        *,
        singular: str,
        records: Callable[[State], Sequence[Any]],
        shown: Callable[[State, Any], dict[str, Shown]],
        columns: Mapping[str, Column] | Sequence[str] = (),
        called: Callable[[Any], str] = attrgetter("name"),
        settings: Mapping[str, str] | Sequence[str] = (),
        sent: Callable[[State, Any, Typed], dict[str, str]] = lambda _, __, typed: dict(typed),
        takes: Mapping[str, str] | None = None,
    ) -> None:
        """Declare a noun.

        `name` is the name of its group, and `singular` is the noun in a sentence. `records` returns
        all of them in order, `called` the name of one, and `shown` its values (in addition to the
        ID), of which `list` prints `columns`. `settings` can be set; a mapping has their names in
        the API. `sent` converts the values typed for a record (None for a new one) to the API's
        parameters, and `takes` describes values that differ from the API's.
        """
        self.app = group(name, about)
        self.records = records
        self.called = called
        self._name, self._singular = name, singular
        self._shown = shown
        self._columns: dict[str, Column] = {
            "ID": "id",
            **(
                columns
                if isinstance(columns, Mapping)
                else {column.replace("_", " ").upper(): column for column in columns}
            ),
        }
        self._settings = (
            settings
            if isinstance(settings, Mapping)
            else {setting: setting for setting in settings}
        )
        self._sent, self._takes = sent, takes or {}
        self._plural = name.replace("-", " ")
        metavar = singular.upper().replace(" ", "-")
        self.which = Annotated[
            str, typer.Argument(metavar=metavar, help="Name or ID, as shown by `list`.")
        ]

    # Finding and printing

    def found(self, state: State, which: str) -> Any:
        """Return the record with this name or ID. Raise Refused if it doesn't exist, or if several
        have the name."""
        records = self.records(state)
        matches = [
            record for record in records if self.called(record).casefold() == which.casefold()
        ]
        if not matches and (record_id := id_in(which)) is not None:
            matches = [record for record in records if record.id == record_id]
        if not matches:
            raise Refused(f"{self._singular.capitalize()} '{which}' doesn't exist.")
        if len(matches) > 1:
            ids = " or ".join(str(match.id) for match in matches)
            raise Refused(f"Several {self._plural} are named '{which}'. Use an ID: {ids}.")
        return matches[0]

    def printed(self, state: State, record: Any) -> Printed:
        """Return a record with all its values."""
        full = self.full(state, record)
        return Printed(full, facts((name, cell(value)) for name, value in full.items()))

    def listed(self, state: State, records: Sequence[Any]) -> Printed:
        """Return the records as a table."""
        rows = [self.full(state, record) for record in records]
        return listing(self._plural.replace(" ", "_"), self._columns, rows)

    def full(self, state: State, record: Any) -> dict[str, Shown]:
        """Return all values of a record, as in JSON."""
        return {"id": int(record.id), **self._shown(state, record)}

    def _with_id(self, state: State, record_id: int) -> Printed:
        return self.printed(state, self._record(state, record_id))

    def _record(self, state: State, record_id: int) -> Any:
        return next(record for record in self.records(state) if record.id == record_id)

    # Commands

    def list(self) -> None:
        """Add `list`, which lists all records, or those that contain words."""

        async def list_them(caller: Caller, words: Words = None) -> Printed:
            def matches(record: Any) -> bool:
                cells = cells_of(self.full(caller.state, record), self._columns)
                return contains("\n".join(cells), words)

            return self.listed(caller.state, list(filter(matches, self.records(caller.state))))

        self._add("list", list_them, f"List {self._plural}, or find some by words.", "")

    def show(self, example: str) -> None:
        """Add `show`, which shows one record with all its values."""

        # Typer reads these annotations when the command is declared; mypy can't.
        async def show_it(caller: Caller, which: self.which) -> Printed:  # type: ignore[name-defined]
            return self.printed(caller.state, self.found(caller.state, which))

        self._add("show", show_it, f"Show a {self._singular} and its settings.", example)

    def create(
        self, verb: str, endpoint: Endpoint, example: str, new_id: Callable[[Any], int]
    ) -> None:
        """Add `add` or `create`, with the settings that can be set. `new_id` returns the ID in a
        response of the endpoint."""
        names = self._names(endpoint)

        async def create_one(caller: Caller, assigned: _assigned(names)) -> Printed:  # type: ignore[valid-type]
            response = await call_endpoint(
                endpoint, caller, self._given(caller.state, None, assigned, endpoint)
            )
            return self._with_id(caller.state, new_id(response))

        about = f"{verb.title()} a {self._singular}.\n\n{self._explained(endpoint)}"
        self._add(verb, create_one, about, example)

    def change(self, endpoint: Endpoint, example: str) -> None:
        """Add `change`, which makes all given changes or none."""
        names = self._names(endpoint)

        async def change_it(
            caller: Caller,
            which: self.which,  # type: ignore[name-defined]
            assigned: _assigned(names),  # type: ignore[valid-type]
        ) -> Printed:
            record = self.found(caller.state, which)
            await call_endpoint(
                endpoint, caller, self._given(caller.state, record, assigned, endpoint)
            )
            return self._with_id(caller.state, record.id)

        about = f"Change a {self._singular}. If one value is invalid, nothing is changed."
        self._add("change", change_it, f"{about}\n\n{self._explained(endpoint)}", example)

    def order(self, endpoint: Endpoint, example: str) -> None:
        """Add `order`, which moves some records to the top."""
        (name,) = (parameter.name for parameter in declared(endpoint))

        async def order_them(
            caller: Caller,
            those: Annotated[
                list[str],
                typer.Argument(metavar="WHICH…", help="Names or IDs, in the order that you want."),
            ],
        ) -> Printed:
            first = [self.found(caller.state, text).id for text in those]
            if len(set(first)) < len(first):
                raise UsageError("The same entry is named twice.")
            others = [record.id for record in self.records(caller.state) if record.id not in first]
            await call_endpoint(endpoint, caller, {name: [*first, *others]})
            return done(f"Changed the order of {self._plural}.")

        about = f"Move {self._plural} to the top, in this order. The others keep their order."
        self._add("order", order_them, about, example)

    def end(self, verb: str, endpoint: Endpoint, about: str, example: str) -> None:
        """Add `remove` or a similar command, whose endpoint takes only the record's ID or name."""
        (key,) = (parameter for parameter in declared(endpoint) if parameter.in_path)

        async def end_it(caller: Caller, which: self.which) -> Printed:  # type: ignore[name-defined]
            record = self.found(caller.state, which)
            called = self.called(record)
            value = called if key.type is str else record.id
            await call_endpoint(endpoint, caller, {key.name: value})
            return done(f"{verb.capitalize()}d {self._singular} '{called}'.")

        self._add(verb, end_it, about, example)

    def add(self, verb: str, example: str) -> Callable[[Act], Act]:
        """Return a decorator that adds a separate command, as `command` does."""
        line = " ".join(filter(None, (self._name, verb, example, "--data-dir data")))
        return command(self.app, verb, line)

    def _add(self, verb: str, act: Act, about: str, example: str) -> None:
        act.__doc__ = about
        self.add(verb, example)(act)

    def _names(self, endpoint: Endpoint) -> dict[str, str]:
        """Return the settings that the endpoint takes, with their names in the API."""
        taken = {parameter.name for parameter in declared(endpoint) if not parameter.in_path}
        return {theirs: name for theirs, name in self._settings.items() if name in taken}

    def _given(
        self, state: State, record: Any, assigned: Sequence[str], endpoint: Endpoint
    ) -> dict[str, Any]:
        names = self._names(endpoint)
        typed = self._sent(state, record, assignments.split(assigned, names))
        sent = {names.get(name, name): text for name, text in typed.items()}
        for parameter in declared(endpoint):
            if parameter.in_path:
                sent[parameter.name] = (
                    self.called(record) if parameter.type is str else str(record.id)
                )
        return assignments.read(endpoint, sent, {there: name for name, there in names.items()})

    def _explained(self, endpoint: Endpoint) -> str:
        """Return a line for each setting, with the values that it accepts."""
        lines = []
        for name, there in self._names(endpoint).items():
            parameter = assignments.parameter(endpoint, there)
            takes = self._takes.get(name) or assignments.kind_of(parameter)
            about = "" if name in self._takes else parameter.description
            lines.append(
                f"- `{name}`: {takes}{'; required' * parameter.required}. {about}".rstrip()
            )
        return "\n".join(lines)


def _assigned(names: Mapping[str, str]) -> Any:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    argument = typer.Argument(metavar="NAME=VALUE…", autocompletion=complete, help="Values to set.")
    return Annotated[list[str], argument]
