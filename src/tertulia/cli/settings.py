"""`tertulia settings` and `tertulia defaults`: settings of the organization and of new users."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import Enum
from typing import Annotated, Any, Final

import typer
from msgspec import Struct

from tertulia.cli import assignments
from tertulia.cli.assignments import UNLIMITED, Shown
from tertulia.cli.commands import Printed, command, group
from tertulia.cli.errors import UsageError
from tertulia.cli.tables import facts
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization import settings
from tertulia.domain.organization.settings import FOR_EVER, FOR_OWNERS
from tertulia.model.organization import Realm
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.organization.endpoints import UpdateRealm, change_realm
from tertulia.wire.api.organization.objects import SIGN_IN_SETTING, api_settings, wire_name
from tertulia.wire.api.settings import SettingParams, field_names, settings_sent
from tertulia.wire.http.parameters import Params


class NamedSetting(Struct, frozen=True, kw_only=True):
    """A setting with its value and allowed values."""

    name: str
    value: Shown
    takes: str
    for_owners: bool
    """Whether only owners can change it."""
    about: str


class Settings(Struct, frozen=True, kw_only=True):
    """Values of settings by name, as `set` takes them."""

    settings: dict[str, Shown]


class NamedSettings(Struct, frozen=True, kw_only=True):
    """A group of settings, and how to show and set them."""

    whose: str
    """The name of these settings in a sentence: `the organization's settings`."""
    params: type[Params]
    change: Callable[[Caller, Any], Awaitable[Any]]
    names: Callable[[], Mapping[str, str]]
    """The names in the API, by name on the command line, in alphabetical order."""
    value: Callable[[State, str], Shown]
    """Returns a value as `set` takes it."""
    sent: Callable[[State, str, str], str] = lambda _, __, text: text
    """Converts a typed value of the named setting for the API."""
    for_owners: Collection[str] = ()
    takes: Mapping[str, tuple[str, str]] = {}
    """The values and descriptions of settings for which they differ from those of the API."""


def add_commands(app: typer.Typer, those: NamedSettings, example: str, hint: str) -> None:
    """Add the commands to the group. `example` is a setting with its value, and `hint` explains
    values that can be typed."""

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
        values = {name: those.value(state, name) for name in names}
        lines = facts((name, assignments.line_of(value)) for name, value in values.items())
        return Printed(Settings(settings=values), lines)

    async def list_settings(caller: Caller) -> Printed:
        return printed(caller.state, those.names())

    async def show(caller: Caller, name: Annotated[str, about_name]) -> Printed:
        names = those.names()
        assignments.require_known(name, names)
        parameter = assignments.parameter(those.params, names[name])
        takes, about = those.takes.get(name) or (
            assignments.kind_of(parameter),
            parameter.description,
        )
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
        renamed = {there: name for name, there in names.items()}
        await those.change(caller, those.params(**assignments.read(those.params, sent, renamed)))
        return printed(caller.state, typed)

    list_settings.__doc__ = f"List {those.whose} and their values."
    show.__doc__ = "Show a setting, its value, and the values it takes."
    set_.__doc__ = f"Change {those.whose}. If one value is invalid, nothing is changed.\n\n{hint}"
    command(app, "list", f"{of} list --data-dir data")(list_settings)
    command(app, "show", f"{of} show {example.partition('=')[0]} --data-dir data")(show)
    command(app, "set", f"{of} set {example}")(set_)


app = group(
    "settings",
    "Manage the organization's settings: list, show, and set them. (For server settings:"
    " `config`; for new users' settings: `defaults`.)",
)

_METHODS: Final = "authentication_methods"


def _organization_names() -> dict[str, str]:
    settings = api_settings().items()
    names = {
        field: wire_name(field) for field, setting in settings if not setting.setting.read_only
    }
    return dict(sorted({**names, SIGN_IN_SETTING: _METHODS}.items()))


def _sent(state: State, name: str, text: str) -> str:
    if name in REALM_SETTINGS:
        return assignments.group_typed(state, text)
    if name.endswith("_channel_id"):
        return assignments.channel_typed(state, text)
    if name == SIGN_IN_SETTING:
        if text not in {"true", "false"}:
            raise UsageError(f"Invalid value '{text[:50]}' for {name}: expected true or false.")
        return f'{{"Email": {text}}}'
    return text


def _organization_value(state: State, name: str) -> Shown:
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
    shown: Shown = value
    return shown


add_commands(
    app,
    NamedSettings(
        whose="the organization's settings",
        params=UpdateRealm,
        change=change_realm,
        names=_organization_names,
        value=_organization_value,
        sent=_sent,
        for_owners=FOR_OWNERS,
        takes={SIGN_IN_SETTING: ("true or false", "Whether people can sign in with a password.")},
    ),
    "invite_required=false can_invite_users_group=moderators",
    "Changes apply to everyone immediately. Use names for groups and channels. Limits can be"
    " `unlimited`, and channels can be `none`.",
)

defaults = group(
    "defaults",
    "Manage default settings for new users: list, show, and set them. (For default channels:"
    " `channels change NAME is_default=true`.)",
)

_AUTOMATIC: Final = "null"
"""The value of a setting that follows the user's language or region."""
_OF_THE_ORGANIZATION: Final = "default_language"
"""A setting of the organization: see `tertulia settings`."""


def _default_names() -> dict[str, str]:
    names = {field: there for there, field in field_names().items()}
    del names[_OF_THE_ORGANIZATION]
    return dict(sorted(names.items()))


def _default_value(state: State, name: str) -> Shown:
    value = getattr(state.default_settings, name)
    shown: Shown = value.value if isinstance(value, Enum) else value
    return _AUTOMATIC if shown is None else shown


async def _change_defaults(caller: Caller, params: SettingParams) -> None:
    await caller.submit(settings.change_defaults, settings_sent(params))


add_commands(
    defaults,
    NamedSettings(
        whose="the default settings for new users",
        params=SettingParams,
        change=_change_defaults,
        names=_default_names,
        value=_default_value,
    ),
    "enter_sends=true color_scheme=2",
    "Existing users keep their settings. `show` explains the values of a setting.",
)
