"""Settings that are kept in the database, each a group of commands: list, show and set.

What a value may be, the declarations of the interface say, and the verbs behind it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Annotated, Any

import typer
from msgspec import Struct

from tertulia.cli import assignments
from tertulia.cli.assignments import Shown
from tertulia.cli.commands import Printed, command
from tertulia.cli.tables import facts
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.http.parameters import Params


class NamedSetting(Struct, frozen=True, kw_only=True):
    """A setting, and what it can be."""

    name: str
    value: Shown
    takes: str
    for_owners: bool
    """Whether administrators who are no owners cannot change it."""
    about: str


class Settings(Struct, frozen=True, kw_only=True):
    """The settings by name, as `set` takes them."""

    settings: dict[str, Shown]


class NamedSettings(Struct, frozen=True, kw_only=True):
    """Some settings, and how one is shown and set."""

    whose: str
    """What they are, in a sentence: `the organization's settings`."""
    params: type[Params]
    change: Callable[[Caller, Any], Awaitable[Any]]
    names: Callable[[], Mapping[str, str]]
    """What is called how in the interface, by its name here, in alphabetical order."""
    value: Callable[[State, str], Shown]
    """A value as `set` takes it."""
    sent: Callable[[State, str, str], str] = lambda _, __, text: text
    """What was typed for a name, as the interface takes it."""
    for_owners: Collection[str] = ()
    takes: Mapping[str, tuple[str, str]] = {}
    """What some take, and what they are about, where the interface says it otherwise."""


def add_commands(app: typer.Typer, those: NamedSettings, example: str, hint: str) -> None:
    """Add the commands to the group. `example` is a setting with its value, `hint` what to know of
    values that are typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in those.names() if name.startswith(incomplete)]

    about_name = typer.Argument(
        metavar="NAME", autocompletion=complete, help="Name of a setting, as shown by `list`."
    )
    about_new = typer.Argument(
        metavar="NAME=VALUE…", autocompletion=complete, help="Settings to change."
    )
    of = app.info.name

    def printed(state: State, names: Collection[str]) -> Printed:
        found = {name: those.value(state, name) for name in names}
        lines = facts((name, assignments.line_of(value)) for name, value in found.items())
        return Printed(Settings(settings=found), lines)

    async def list_settings(caller: Caller) -> Printed:
        return printed(caller.state, those.names())

    async def show(caller: Caller, name: Annotated[str, about_name]) -> Printed:
        names = those.names()
        assignments.require_known(name, names)
        one = assignments.parameter(those.params, names[name])
        takes, about = those.takes.get(name) or (assignments.kind_of(one), one.description)
        setting = NamedSetting(
            name=name,
            value=those.value(caller.state, name),
            takes=takes,
            for_owners=name in those.for_owners,
            about=about,
        )
        pairs = [("value", assignments.line_of(setting.value)), ("takes", setting.takes)]
        if setting.about:
            pairs.append(("about", setting.about))
        return Printed(setting, facts(pairs))

    async def set_(caller: Caller, assigned: Annotated[list[str], about_new]) -> Printed:
        names = those.names()
        typed = assignments.split(assigned, names)
        sent = {names[name]: those.sent(caller.state, name, text) for name, text in typed.items()}
        here = {there: name for name, there in names.items()}
        await those.change(caller, assignments.read(those.params, sent, here))
        return printed(caller.state, typed)

    list_settings.__doc__ = f"List {those.whose} and their values."
    show.__doc__ = "Show a setting, its value, and the values it takes."
    set_.__doc__ = f"Change {those.whose}. If one value is invalid, nothing is changed.\n\n{hint}"
    command(app, "list", f"{of} list --data-dir data")(list_settings)
    command(app, "show", f"{of} show {example.partition('=')[0]} --data-dir data")(show)
    command(app, "set", f"{of} set {example}")(set_)
