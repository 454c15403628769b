"""What an organization has several of and administrators set up, each of them a group of commands:
list, show, make, change, order and remove.

What can be set of one, and what it may be, the declarations of the interface say, and the verbs
behind it. Here is only what is nicer to type.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any

import typer
from msgspec import Struct

from tertulia.cli import assignments
from tertulia.cli.accounts import id_in
from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Act, Printed, command, done
from tertulia.cli.errors import UsageError
from tertulia.cli.tables import facts, table
from tertulia.model.errors import Refused
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.http.parameters import Params, declared

Endpoint = Callable[[Caller, Any], Awaitable[Any]]
Typed = Mapping[str, str]
"""Values by the names that were typed."""


def _as_typed(_: State, __: Any, typed: Typed) -> dict[str, str]:
    return dict(typed)


class Noun(Struct, frozen=True, kw_only=True):
    """A kind of things, and how one is shown and typed."""

    several: str
    """What they are called, in `--json` too."""
    one: str
    records: Callable[[State], Sequence[Any]]
    """All of them, in their order."""
    called: Callable[[Any], str] = attrgetter("name")
    """By what a record can be named, beside its ID."""
    shown: Callable[[State, Any], dict[str, Shown]]
    """What is shown of a record beside its ID: what can be set by its names, as it can be typed."""
    columns: Sequence[str]
    """What of that `list` prints."""
    names: Mapping[str, str]
    """What can be set: what it is called in the interface, by its name here."""
    sent: Callable[[State, Any, Typed], dict[str, str]] = _as_typed
    """What was typed about a record (None for a new one), by the same names, as the interface takes
    it. One name may stand for what several were typed for."""
    takes: Mapping[str, str] = {}
    """What can be typed, in words, where it is not what the interface takes."""


# What a command takes is read from its annotations, which are made for each noun where the command
# is: the type checker takes a value for no type, so it is silenced at these and nowhere else.


class Verbs:
    """Adds the commands of a noun to its group."""

    def __init__(self, app: typer.Typer, noun: Noun) -> None:
        self._app = app
        self._noun = noun
        self._which = Annotated[
            str,
            typer.Argument(
                metavar=noun.one.upper().replace(" ", "-"), help="Name or ID, as shown by `list`."
            ),
        ]

    def found(self, state: State, which: str) -> Any:
        """The record of that name or ID. Refused where there is none, or several have the name."""
        records = self._noun.records(state)
        found = [one for one in records if self._noun.called(one).casefold() == which.casefold()]
        if not found and (record_id := id_in(which)) is not None:
            found = [one for one in records if one.id == record_id]
        if not found:
            raise Refused(f"{self._noun.one.capitalize()} '{which}' doesn't exist.")
        if len(found) > 1:
            ids = " or ".join(str(one.id) for one in found)
            raise Refused(f"Several {self._noun.several} are named '{which}'. Use an ID: {ids}.")
        return found[0]

    def printed(self, state: State, record: Any) -> Printed:
        """One record with all that is shown of it."""
        full = self._full(state, record)
        return Printed(full, facts((n, assignments.line_of(v)) for n, v in full.items()))

    def _full(self, state: State, record: Any) -> dict[str, Shown]:
        return {"id": int(record.id), **self._noun.shown(state, record)}

    def _with_id(self, state: State, record_id: int) -> Printed:
        record = next(one for one in self._noun.records(state) if one.id == record_id)
        return self.printed(state, record)

    def list(self) -> None:
        """`list`: all, or some by words."""
        noun = self._noun

        async def list_them(
            caller: Caller,
            words: Annotated[
                list[str] | None,
                typer.Argument(
                    metavar="[WORD]…", help="Show only entries that contain all of these words."
                ),
            ] = None,
        ) -> Printed:
            wanted = [word.casefold() for word in words or ()]
            found = [self._full(caller.state, one) for one in noun.records(caller.state)]
            lines = [[assignments.line_of(one[n]) for n in ("id", *noun.columns)] for one in found]
            kept = [
                number
                for number, line in enumerate(lines)
                if all(word in "\n".join(line).casefold() for word in wanted)
            ]
            headings = ("ID", *(name.replace("_", " ").upper() for name in noun.columns))
            return Printed(
                {noun.several.replace(" ", "_"): [found[number] for number in kept]},
                table(headings, [lines[number] for number in kept]),
            )

        self._add("list", list_them, f"List {noun.several}, or find some by words.", "")

    def show(self, example: str) -> None:
        """`show`: one with all that can be set of it."""

        async def show_it(caller: Caller, which: self._which) -> Printed:  # type: ignore[name-defined]
            return self.printed(caller.state, self.found(caller.state, which))

        about = f"Show a {self._noun.one} and its settings."
        self._add("show", show_it, about, example)

    def make(
        self,
        verb: str,
        params: type[Params],
        endpoint: Endpoint,
        id_of: Callable[[Any], int],
        example: str,
    ) -> None:
        """`add` or `create`, with what can be set. `id_of` says of an answer whose it is."""
        names = self._names(params)

        async def make_one(caller: Caller, assigned: _assigned(names)) -> Printed:  # type: ignore[valid-type]
            given = self._given(caller.state, None, assigned, params, names)
            answer = await endpoint(caller, given)
            return self._with_id(caller.state, id_of(answer))

        about = f"{verb.title()} a {self._noun.one}.\n\n{self._explained(params, names)}"
        self._add(verb, make_one, about, example)

    def change(self, params: type[Params], endpoint: Endpoint, example: str) -> None:
        """`change`: all that is given, or nothing."""
        names = self._names(params)

        async def change_it(
            caller: Caller,
            which: self._which,  # type: ignore[name-defined]
            assigned: _assigned(names),  # type: ignore[valid-type]
        ) -> Printed:
            record = self.found(caller.state, which)
            await endpoint(caller, self._given(caller.state, record, assigned, params, names))
            return self._with_id(caller.state, record.id)

        about = f"Change a {self._noun.one}. If one value is invalid, nothing is changed."
        self._add("change", change_it, f"{about}\n\n{self._explained(params, names)}", example)

    def order(self, params: type[Params], endpoint: Endpoint, example: str) -> None:
        """`order`: those that are named come first, the others follow as they did."""
        (name,) = (one.field for one in declared(params))
        noun = self._noun

        async def order_them(
            caller: Caller,
            those: Annotated[
                list[str],
                typer.Argument(metavar="WHICH…", help="Names or IDs, in the order that you want."),
            ],
        ) -> Printed:
            first = [self.found(caller.state, one).id for one in those]
            if len(set(first)) < len(first):
                raise UsageError("The same entry is named twice.")
            others = [one.id for one in noun.records(caller.state) if one.id not in first]
            await endpoint(caller, params(**{name: [*first, *others]}))
            return done(f"Changed the order of {noun.several}.")

        about = f"Move {noun.several} to the top, in this order. The others keep their order."
        self._add("order", order_them, about, example)

    def end(
        self, verb: str, params: type[Params], endpoint: Endpoint, about: str, example: str
    ) -> None:
        """`remove` or the like: something is done to one of them, by what its path names."""
        (name,) = (one.field for one in declared(params) if one.in_path)
        is_number = next(one for one in declared(params) if one.in_path).type is not str

        async def end_it(caller: Caller, which: self._which) -> Printed:  # type: ignore[name-defined]
            record = self.found(caller.state, which)
            called = self._noun.called(record)
            await endpoint(caller, params(**{name: record.id if is_number else called}))
            return done(f"{verb.capitalize()}d {self._noun.one} '{called}'.")

        self._add(verb, end_it, about, example)

    def add(self, verb: str, example: str) -> Callable[[Act], Act]:
        """A command of its own, as `command`."""
        return command(self._app, verb, self._typed(verb, example))

    def _add(self, verb: str, act: Act, about: str, example: str) -> None:
        act.__doc__ = about
        self.add(verb, example)(act)

    def _typed(self, verb: str, rest: str) -> str:
        return " ".join(filter(None, (self._app.info.name, verb, rest, "--data-dir data")))

    def _names(self, params: type[Params]) -> dict[str, str]:
        """Of the noun's names those that the parameters have."""
        there = {one.name for one in declared(params) if not one.in_path}
        return {here: name for here, name in self._noun.names.items() if name in there}

    def _given(
        self,
        state: State,
        record: Any,
        assigned: Sequence[str],
        params: type[Params],
        names: Mapping[str, str],
    ) -> Params:
        typed = self._noun.sent(state, record, assignments.split(assigned, names))
        sent = {names.get(name, name): text for name, text in typed.items()}
        for one in declared(params):
            if one.in_path:
                sent[one.name] = str(
                    record.id if one.type is not str else self._noun.called(record)
                )
        here = {there: name for name, there in names.items()}
        return assignments.read(params, sent, here)

    def _explained(self, params: type[Params], names: Mapping[str, str]) -> str:
        """A line for each name, with what it takes."""
        lines = []
        for here, there in names.items():
            one = assignments.parameter(params, there)
            takes = self._noun.takes.get(here) or assignments.kind_of(one)
            about = "" if here in self._noun.takes else one.description
            lines.append(f"- `{here}`: {takes}{'; required' * one.required}. {about}".rstrip())
        return "\n".join(lines)


def _assigned(names: Mapping[str, str]) -> Any:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    argument = typer.Argument(metavar="NAME=VALUE…", autocompletion=complete, help="Values to set.")
    return Annotated[list[str], argument]
