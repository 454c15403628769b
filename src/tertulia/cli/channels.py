"""`tertulia channels`: channels, and who is subscribed to them."""

from typing import Annotated, Final

import typer
from msgspec import Struct

from tertulia.cli import assignments
from tertulia.cli.accounts import account_called, id_in, role_name, status_of
from tertulia.cli.assignments import NONE, Shown
from tertulia.cli.commands import Printed, command, done, group
from tertulia.cli.errors import UsageError
from tertulia.cli.tables import day, facts, table
from tertulia.domain.channels import channels
from tertulia.domain.channels.channels import FOR_EVER, ChannelEdit, NewChannel
from tertulia.domain.channels.subscriptions import SubscribeRequest
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.model.channels import Channel
from tertulia.model.counts import counted
from tertulia.model.errors import Refused
from tertulia.service import bulk_subscriptions
from tertulia.service.caller import Caller
from tertulia.state.organization import State
from tertulia.wire.api.objects.own_limits import own_limit_shown
from tertulia.wire.api.resources.channels import (
    CreateChannel,
    UpdateChannel,
    create_channel,
    update_stream,
)

app = group(
    "channels",
    "Manage channels and their subscribers.",
)

_NAMES: Final = {
    "name": "new_name",
    "description": "description",
    "is_private": "is_private",
    "is_web_public": "is_web_public",
    "history_public": "history_public_to_subscribers",
    "is_default": "is_default_stream",
    "retention_days": "message_retention_days",
    "topics_policy": "topics_policy",
    "folder": "folder_id",
    **{name: name for name in CHANNEL_SETTINGS},
}
"""What is called how in the interface, by its name here."""

Which = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name or ID of the channel.")]
People = Annotated[
    list[str],
    typer.Argument(metavar="USER…", help="Email addresses or user IDs of people or bots."),
]


def complete(incomplete: str) -> list[str]:
    """The names of settings that begin so, for shells."""
    return [name for name in _NAMES if name.startswith(incomplete)]


class ChannelShown(Struct, frozen=True, kw_only=True):
    """A channel. The times are UNIX seconds."""

    id: int
    name: str
    kind: str
    """public, private, web-public."""
    is_default: bool
    is_archived: bool
    subscribers: int
    created_at: int
    last_message_at: int | None
    """A day at most behind."""


class Channels(Struct, frozen=True, kw_only=True):
    """Channels, by ID."""

    channels: list[ChannelShown]


class ChannelInFull(ChannelShown, frozen=True, kw_only=True):
    """A channel with its settings, as `change` takes them."""

    settings: dict[str, Shown]


class Subscriber(Struct, frozen=True, kw_only=True):
    """An account that is subscribed."""

    user_id: int
    email: str
    full_name: str
    role: str
    status: str


class Subscribers(Struct, frozen=True, kw_only=True):
    """Accounts, by ID."""

    subscribers: list[Subscriber]


def _channel(caller: Caller, which: str) -> Channel:
    """The channel of that name or ID. Refused where there is none."""
    state = caller.state
    channel = state.channel_named(which.removeprefix("#"))
    if channel is None and (channel_id := id_in(which)) is not None:
        channel = state.channels.get(channel_id)
    if channel is None:
        raise Refused(f"Channel '{which}' doesn't exist.")
    return channel


def _shown(state: State, channel: Channel) -> ChannelShown:
    kind = "private" if channel.is_private else "public"
    return ChannelShown(
        id=channel.id,
        name=channel.name,
        kind="web-public" if channel.is_web_public else kind,
        is_default=channel.is_default,
        is_archived=channel.is_archived,
        subscribers=len(state.subscribers(channel.id)),
        created_at=channel.created_at,
        last_message_at=channel.last_message_at,
    )


@command(app, "list", "channels list --data-dir data")
async def list_channels(
    caller: Caller,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]…", help="Show only channels whose name contains all of these words."
        ),
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Show archived channels instead of active ones.")
    ] = False,
) -> Printed:
    """List channels, including private ones, or find some by words in their names."""
    state = caller.state
    wanted = [word.casefold() for word in words or ()]
    found = [
        _shown(state, one)
        for one in sorted(state.channels, key=lambda one: one.id)
        if one.is_archived is archived and all(word in one.name.casefold() for word in wanted)
    ]
    headings = ("ID", "NAME", "KIND", "DEFAULT", "SUBSCRIBERS", "CREATED", "LAST MESSAGE")
    rows = (
        (
            *(str(one.id), one.name, one.kind, "yes" if one.is_default else ""),
            *(str(one.subscribers), day(one.created_at), day(one.last_message_at)),
        )
        for one in found
    )
    return Printed(Channels(channels=found), table(headings, rows))


@command(app, "show", "channels show general --data-dir data")
async def show(caller: Caller, which: Which) -> Printed:
    """Show a channel and its settings."""
    channel = _channel(caller, which)
    return _printed(caller.state, channel)


def _printed(state: State, channel: Channel) -> Printed:
    shown = _shown(state, channel)
    full = ChannelInFull(
        **{name: getattr(shown, name) for name in shown.__struct_fields__},
        settings={name: _value(state, channel, name) for name in _NAMES},
    )
    pairs = [
        *(("id", str(full.id)), ("archived", "yes" if full.is_archived else "no")),
        *(("subscribers", str(full.subscribers)), ("created", day(full.created_at))),
        ("last message", day(full.last_message_at)),
        *((name, assignments.line_of(value)) for name, value in full.settings.items()),
    ]
    return Printed(full, facts(pairs))


def _value(state: State, channel: Channel, name: str) -> Shown:
    """A setting's value, as `change` takes it."""
    if name == "folder":
        folder = state.folders.get(channel.folder_id)
        return NONE if folder is None else folder.name
    value = getattr(channel, name)
    if name in CHANNEL_SETTINGS:
        return assignments.group_shown(state, value)
    if name == "topics_policy":
        return str(value.value)
    if name == "retention_days":
        return own_limit_shown(value, FOR_EVER)
    found: Shown = value
    return found


@command(app, "create", "channels create weather --private --subscriber ben@example.com")
async def create(
    caller: Caller,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the channel.")],
    description: Annotated[str, typer.Option(help="What the channel is for, in Markdown.")] = "",
    private: Annotated[
        bool, typer.Option("--private", help="Only subscribers can find and read it.")
    ] = False,
    web_public: Annotated[
        bool, typer.Option("--web-public", help="Anyone on the web can read it without an account.")
    ] = False,
    default: Annotated[bool, typer.Option("--default", help="Subscribe new users to it.")] = False,
    subscriber: Annotated[
        list[str] | None,
        typer.Option(metavar="USER", help="Subscribe this account. Can be repeated."),
    ] = None,
    announce: Annotated[
        bool,
        typer.Option(
            "--announce", help="Announce it in the organization's channel for new channels."
        ),
    ] = False,
) -> Printed:
    """Create a channel. Use `tertulia channels change` for its other settings."""
    wanted = CreateChannel(
        name=name,
        description=description,
        invite_only=private,
        is_web_public=web_public,
        is_default_stream=default,
        subscribers=_ids(caller, subscriber or []),
        announce=announce,
        send_new_subscription_messages=False,
    )
    made = await create_channel(caller, wanted)
    return _printed(caller.state, caller.state.channels[made.id])


@command(app, "change", "channels change general name=lobby can_send_message_group=moderators")
async def change(
    caller: Caller,
    which: Which,
    assigned: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE…", autocompletion=complete, help="Settings to change."),
    ],
) -> Printed:
    """Change a channel's settings. If one value is invalid, nothing is changed.

    `tertulia channels show` lists the settings. Use names for groups and folders. `retention_days`
    can also be `unlimited` or `realm_default`, and `folder` can be `none`.
    """
    state = caller.state
    channel = _channel(caller, which)
    typed = assignments.split(assigned, _NAMES)
    sent = {_NAMES[name]: _sent(state, name, text) for name, text in typed.items()}
    here = {there: name for name, there in _NAMES.items()}
    params = assignments.read(UpdateChannel, {**sent, "stream_id": str(channel.id)}, here)
    await update_stream(caller, params)
    return _printed(caller.state, caller.state.channels[channel.id])


def _sent(state: State, name: str, text: str) -> str:
    """The value as the interface takes it."""
    if name in CHANNEL_SETTINGS:
        return assignments.group_typed(state, text)
    if name != "folder":
        return text
    if text == NONE:
        return "null"
    named = [one.id for one in state.folders if one.name.casefold() == text.casefold()]
    if not named:
        raise UsageError(f"Folder '{text}' doesn't exist.")
    return str(named[0])


@command(app, "archive", "channels archive weather --data-dir data")
async def archive(caller: Caller, which: Which) -> Printed:
    """Archive a channel. Its messages stay readable, and no one can send new ones."""
    channel = _channel(caller, which)
    await caller.submit(channels.archive, channel.id)
    return done(f"#{channel.name} is archived.")


@command(app, "unarchive", "channels unarchive weather --data-dir data")
async def unarchive(caller: Caller, which: Which) -> Printed:
    """Unarchive a channel."""
    channel = _channel(caller, which)
    edit = ChannelEdit(unarchive=True)
    await caller.submit(channels.change, channel.id, edit, caller.render)
    return done(f"#{channel.name} is no longer archived.")


@command(app, "subscribers", "channels subscribers general --data-dir data")
async def subscribers(caller: Caller, which: Which) -> Printed:
    """List the people and bots that are subscribed to a channel."""
    state = caller.state
    found = [
        Subscriber(
            user_id=one.id,
            email=one.address,
            full_name=one.full_name,
            role="bot" if one.is_bot else role_name(one.role),
            status=status_of(one),
        )
        for one in (state.users[i] for i in state.subscribers(_channel(caller, which).id))
    ]
    rows = ((str(one.user_id), one.email, one.full_name, one.role) for one in found)
    return Printed(Subscribers(subscribers=found), table(("ID", "EMAIL", "NAME", "ROLE"), rows))


@command(app, "subscribe", "channels subscribe general ben@example.com --data-dir data")
async def subscribe(
    caller: Caller,
    which: Which,
    people: People,
    tell: Annotated[
        bool,
        typer.Option(
            "--tell",
            help="Notify each of them with a direct message that names the organization's owner.",
        ),
    ] = False,
) -> Printed:
    """Subscribe accounts to a channel."""
    channel = _channel(caller, which)
    wanted = SubscribeRequest(
        channels=(NewChannel(name=channel.name),),
        principals=tuple(_ids(caller, people)),
        notify_subscribed=tell,
    )
    outcome = await bulk_subscriptions.subscribe(caller, wanted)
    return _changed(f"to #{channel.name}", "subscribed", len(outcome.subscribed))


@command(app, "unsubscribe", "channels unsubscribe general ben@example.com --data-dir data")
async def unsubscribe(caller: Caller, which: Which, people: People) -> Printed:
    """Unsubscribe accounts from a channel."""
    channel = _channel(caller, which)
    ids = _ids(caller, people)
    before = len(caller.state.subscribers(channel.id))
    await bulk_subscriptions.unsubscribe(caller, [channel.name], tuple(ids))
    ended = before - len(caller.state.subscribers(channel.id))
    return _changed(f"from #{channel.name}", "unsubscribed", ended)


class Changed(Struct, frozen=True):
    """How many accounts it changed something for."""

    changed: int


def _changed(place: str, how: str, number: int) -> Printed:
    line = f"{counted(number, 'account was', 'accounts were')} {how} {place}."
    return Printed(Changed(number), [line])


def _ids(caller: Caller, people: list[str]) -> list[int]:
    return list(dict.fromkeys(account_called(caller.state, one).id for one in people))
