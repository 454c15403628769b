"""`tertulia settings`: those of the organization."""

from typing import Annotated, Final

import typer
from msgspec import Struct

from tertulia.cli import assignments
from tertulia.cli.assignments import UNLIMITED, Shown
from tertulia.cli.commands import Printed, command, group
from tertulia.cli.errors import UsageError
from tertulia.cli.tables import facts
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization.settings import FOR_EVER, FOR_OWNERS
from tertulia.model.realm import Realm
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.api.objects.realm import shown_fields, wire_name
from tertulia.wire.api.resources.organization import UpdateRealm, update_realm
from tertulia.wire.http.parameters import declared

app = group(
    "settings",
    "Settings of the organization: list, show and set them. (Those of the server: `config`.)",
)

_PASSWORDS: Final = "password_sign_in"
_METHODS: Final = "authentication_methods"


def _names() -> dict[str, str]:
    """What is called how in the interface, by its name here, in alphabetical order."""
    takes = {one.name for one in declared(UpdateRealm)}
    found = {field: wire_name(field) for field in shown_fields() if wire_name(field) in takes}
    return dict(sorted({**found, _PASSWORDS: _METHODS}.items()))


def complete(incomplete: str) -> list[str]:
    """The names that begin so, for shells."""
    return [name for name in _names() if name.startswith(incomplete)]


class Setting(Struct, frozen=True, kw_only=True):
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


@command(app, "list", "settings list --data-dir data")
async def list_settings(caller: Caller) -> Printed:
    """List the organization's settings with their values, as `set` takes them."""
    found = {name: _value(caller.state, name) for name in _names()}
    lines = facts((name, assignments.line_of(value)) for name, value in found.items())
    return Printed(Settings(settings=found), lines)


Name = Annotated[
    str, typer.Argument(metavar="NAME", autocompletion=complete, help="As `list` shows it.")
]


@command(app, "show", "settings show message_retention_days --data-dir data")
async def show(caller: Caller, name: Name) -> Printed:
    """Show a setting: its value, and what it can be."""
    names = _names()
    assignments.require_known(name, names)
    one = assignments.parameter(UpdateRealm, names[name])
    setting = Setting(
        name=name,
        value=_value(caller.state, name),
        takes="true or false" if name == _PASSWORDS else assignments.kind_of(one),
        for_owners=name in FOR_OWNERS,
        about="Whether people sign in by password." if name == _PASSWORDS else one.description,
    )
    pairs = [("value", assignments.line_of(setting.value)), ("takes", setting.takes)]
    if setting.about:
        pairs.append(("about", setting.about))
    return Printed(setting, facts(pairs))


@command(app, "set", "settings set invite_required=false can_invite_users_group=moderators")
async def set_(
    caller: Caller,
    assigned: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE…", autocompletion=complete, help="What is to be new."),
    ],
) -> Printed:
    """Set settings of the organization: all that are given, or none. Everybody sees it at once.

    Groups and channels are named; a limit can be `unlimited`, a channel `none`.
    """
    names = _names()
    typed = assignments.split(assigned, names)
    sent = {names[name]: _sent(caller.state, name, text) for name, text in typed.items()}
    here = {there: name for name, there in names.items()}
    await update_realm(caller, assignments.read(UpdateRealm, sent, here))
    found = {name: _value(caller.state, name) for name in typed}
    lines = facts((name, assignments.line_of(value)) for name, value in found.items())
    return Printed(Settings(settings=found), lines)


def _sent(state: State, name: str, text: str) -> str:
    """The value as the interface takes it."""
    if name in REALM_SETTINGS:
        return assignments.group_typed(state, text)
    if name.endswith("_channel_id"):
        return assignments.channel_typed(state, text)
    if name == _PASSWORDS:
        if text not in {"true", "false"}:
            raise UsageError(f"{name} cannot be '{text[:50]}': it is true or false.")
        return f'{{"Email": {text}}}'
    return text


def _value(state: State, name: str) -> Shown:
    """The value as `set` takes it."""
    realm: Realm = state.realm
    value = getattr(realm, name)
    if name in REALM_SETTINGS:
        return assignments.group_shown(state, value)
    if name.endswith("_channel_id"):
        return assignments.channel_shown(state, value)
    if name == "jitsi_server_url":
        return "default" if value is None else str(value)
    if value is None or (name == "message_retention_days" and value == FOR_EVER):
        return UNLIMITED
    found: Shown = value
    return found
