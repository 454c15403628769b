"""`tertulia channels`: channels, and who is subscribed to them."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from tertulia.cli import assignments
from tertulia.cli.accounts import Users, role_name, status_of, user_ids
from tertulia.cli.assignments import NONE, Shown
from tertulia.cli.commands import Printed, done, listing
from tertulia.cli.errors import UsageError
from tertulia.cli.nouns import ManagedNoun, by_id
from tertulia.cli.tables import cell, contains, day, facts, yes
from tertulia.domain.channels import channels as verbs
from tertulia.domain.channels.channels import FOR_EVER, ChannelEdit, NewChannel
from tertulia.domain.channels.subscriptions import SubscribeRequest
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.model.channels import Channel
from tertulia.model.numbers import counted
from tertulia.service import bulk_subscriptions
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.channels.endpoints import CreateChannel, create_channel, update_stream
from tertulia.wire.api.organization.objects import limit_json

_SETTINGS: Final = {
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
"""Names of settings in the API, by their names here."""


def _shown(state: State, channel: Channel) -> dict[str, Shown]:
    kind = "private" if channel.is_private else "public"
    return {
        "name": channel.name,
        "kind": "web-public" if channel.is_web_public else kind,
        "is_default": channel.is_default,
        "is_archived": channel.is_archived,
        "subscribers": len(state.subscribers(channel.id)),
        "created_at": channel.created_at,
        "last_message_at": channel.last_message_at,
    }


def _setting(state: State, channel: Channel, name: str) -> Shown:
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
        return limit_json(value, FOR_EVER)
    result: Shown = value
    return result


def _sent(state: State, _: Any, typed: Mapping[str, str]) -> dict[str, str]:
    def sent(name: str, text: str) -> str:
        if name in CHANNEL_SETTINGS:
            return assignments.group_typed(state, text)
        if name != "folder":
            return text
        if text == NONE:
            return "null"
        named = [folder.id for folder in state.folders if folder.name.casefold() == text.casefold()]
        if not named:
            raise UsageError(f"Folder '{text}' doesn't exist.")
        return str(named[0])

    return {name: sent(name, text) for name, text in typed.items()}


class Channels(ManagedNoun):
    """Channels are also found as `#name`, and printed with their settings apart."""

    def found(self, state: State, which: str) -> Channel:
        channel: Channel = super().found(state, which.removeprefix("#"))
        return channel

    def printed(self, state: State, record: Channel) -> Printed:
        full = self.full(state, record)
        settings = {name: _setting(state, record, name) for name in _SETTINGS}
        pairs = {
            "id": str(record.id),
            "archived": yes(record.is_archived),
            "subscribers": str(full["subscribers"]),
            "created": day(record.created_at),
            "last message": day(record.last_message_at),
            **{name: cell(value) for name, value in settings.items()},
        }
        return Printed({**full, "settings": settings}, facts(pairs.items()))


_channels = Channels(
    "channels",
    "Manage channels and their subscribers.",
    singular="channel",
    records=by_id("channels"),
    shown=_shown,
    columns={
        "NAME": "name",
        "KIND": "kind",
        "DEFAULT": ("is_default", lambda default: "yes" if default else ""),
        "SUBSCRIBERS": "subscribers",
        "CREATED": ("created_at", day),
        "LAST MESSAGE": ("last_message_at", day),
    },
    settings=_SETTINGS,
    sent=_sent,
    takes={
        "retention_days": "a number, `unlimited`, or `realm_default`",
        "folder": f"the name of a folder, or `{NONE}`",
    },
)
channels = _channels.app
Which = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name or ID of the channel.")]


@_channels.add("list", "")
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
    matches = [
        record
        for record in _channels.records(caller.state)
        if record.is_archived is archived and contains(record.name, words)
    ]
    return _channels.listed(caller.state, matches)


_channels.show("general")


@_channels.add("create", "weather --private --subscriber ben@example.com")
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
    request = CreateChannel(
        name=name,
        description=description,
        invite_only=private,
        is_web_public=web_public,
        is_default_stream=default,
        subscribers=user_ids(caller.state, subscriber or []),
        announce=announce,
        send_new_subscription_messages=False,
    )
    made = await create_channel(caller, request)
    return _channels.printed(caller.state, caller.state.channels[made.id])


_channels.change(update_stream, "general name=lobby can_send_message_group=moderators")


@_channels.add("archive", "weather")
async def archive(caller: Caller, which: Which) -> Printed:
    """Archive a channel. Its messages stay readable, and no one can send new ones."""
    channel = _channels.found(caller.state, which)
    await caller.submit(verbs.archive, channel.id)
    return done(f"#{channel.name} is archived.")


@_channels.add("unarchive", "weather")
async def unarchive(caller: Caller, which: Which) -> Printed:
    """Unarchive a channel."""
    channel = _channels.found(caller.state, which)
    await caller.submit(verbs.change, channel.id, ChannelEdit(unarchive=True), caller.render)
    return done(f"#{channel.name} is no longer archived.")


# Subscribers


@_channels.add("subscribers", "general")
async def subscribers(caller: Caller, which: Which) -> Printed:
    """List the people and bots that are subscribed to a channel."""
    state = caller.state
    users = (state.users[i] for i in state.subscribers(_channels.found(state, which).id))
    rows = [
        {
            "user_id": user.id,
            "email": user.address,
            "full_name": user.full_name,
            "role": "bot" if user.is_bot else role_name(user.role),
            "status": status_of(user),
        }
        for user in users
    ]
    columns = {"ID": "user_id", "EMAIL": "email", "NAME": "full_name", "ROLE": "role"}
    return listing("subscribers", columns, rows)


@_channels.add("subscribe", "general ben@example.com")
async def subscribe(
    caller: Caller,
    which: Which,
    people: Users,
    tell: Annotated[
        bool,
        typer.Option(
            "--tell",
            help="Notify each of them with a direct message that names the organization's owner.",
        ),
    ] = False,
) -> Printed:
    """Subscribe accounts to a channel."""
    channel = _channels.found(caller.state, which)
    request = SubscribeRequest(
        channels=(NewChannel(name=channel.name),),
        principals=tuple(user_ids(caller.state, people)),
        notify_subscribed=tell,
    )
    outcome = await bulk_subscriptions.subscribe(caller, request)
    return _changed(f"subscribed to #{channel.name}", len(outcome.subscribed))


@_channels.add("unsubscribe", "general ben@example.com")
async def unsubscribe(caller: Caller, which: Which, people: Users) -> Printed:
    """Unsubscribe accounts from a channel."""
    channel = _channels.found(caller.state, which)
    ids = user_ids(caller.state, people)
    before = len(caller.state.subscribers(channel.id))
    await bulk_subscriptions.unsubscribe(caller, [channel.name], tuple(ids))
    ended = before - len(caller.state.subscribers(channel.id))
    return _changed(f"unsubscribed from #{channel.name}", ended)


def _changed(what: str, number: int) -> Printed:
    sentence = f"{counted(number, 'account was', 'accounts were')} {what}."
    return Printed({"changed": number}, [sentence])
