"""Tools that list channels, topics, people, and what is unread."""

import heapq
from itertools import islice
from operator import attrgetter
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.domain.channels.topics import is_muted
from tertulia.model.agents import Reach
from tertulia.model.channels import topic_key
from tertulia.model.errors import Refused
from tertulia.model.user_topics import Visibility
from tertulia.model.users import User
from tertulia.service.messages.reading import topics_of
from tertulia.state.state import State
from tertulia.wire.mcp.objects import (
    ChannelName,
    ChannelRef,
    PersonName,
    channel_called,
    channel_name,
    iso,
    person_name,
    topic_shown,
)
from tertulia.wire.mcp.tool import Arguments, Name, Number, Outcome, ToolCall

Limit = Annotated[int, Meta(ge=1, le=100, description="Items in one page.")]
UNREAD: Final = 5000
"""The newest unread messages, of which conversations are counted."""
_DESCRIPTION: Final = 200


# Who one is


class NoArguments(Arguments, kw_only=True, frozen=True):
    """Nothing."""


class WhoAmI(Outcome, kw_only=True):
    """The agent, and what its key allows."""

    agent: str
    acts_for: PersonName
    organization: str
    may_write: bool
    sees_direct_messages: bool
    channels: Annotated[
        list[ChannelName] | None,
        Meta(description="The channels that it sees; null for all that its owner sees."),
    ]
    now: Annotated[str, Meta(description="ISO 8601, UTC.")]


async def who_am_i(call: ToolCall, _: NoArguments) -> WhoAmI:
    """Tell for whom you act here, and what your key allows."""
    agent = call.agent
    key, reach = agent.key, agent.reach
    return WhoAmI(
        agent=key.name,
        acts_for=person_name(agent.state, agent.user, agent.user.id),
        organization=agent.state.realm.name,
        may_write=reach.may_write,
        sees_direct_messages=reach.directs,
        channels=None
        if reach.channel_ids is None
        else [channel_name(channel) for channel in agent.channels()],
        now=iso(int(agent.now)),
    )


# Channels and topics


class ListChannels(Arguments, kw_only=True, frozen=True):
    """Which channels."""

    name_contains: Name | None = None
    subscribed_only: Annotated[
        bool, Meta(description="Only those to which your owner is subscribed.")
    ] = False
    limit: Limit = 50
    after: Annotated[Number, Meta(description="To go on: the `next_after` of the last page.")] = 0


class ChannelEntry(Struct, kw_only=True):
    """A channel."""

    id: int
    name: str
    description: str
    is_private: bool
    is_archived: bool
    is_subscribed: bool
    may_write: Annotated[bool, Meta(description="Whether your owner may write in it.")]


class Channels(Outcome, kw_only=True):
    """Channels, in the order of their IDs. `next_after` is null where there are no more."""

    channels: list[ChannelEntry]
    next_after: int | None


async def list_channels(call: ToolCall, asked: ListChannels) -> Channels:
    """List the channels that you may know of."""
    state, user = call.agent.state, call.agent.user
    wanted = (asked.name_contains or "").casefold()
    matching = (
        channel
        for channel in call.agent.channels()
        if channel.id > asked.after
        and wanted in channel.name.casefold()
        and (not asked.subscribed_only or state.is_subscribed(user.id, channel.id))
    )
    found = list(islice(matching, asked.limit + 1))
    return Channels(
        channels=[
            ChannelEntry(
                id=channel.id,
                name=channel.name,
                description=channel.description[:_DESCRIPTION],
                is_private=channel.is_private,
                is_archived=channel.is_archived,
                is_subscribed=state.is_subscribed(user.id, channel.id),
                may_write=channel_access.may_send_to(state, user, channel),
            )
            for channel in found[: asked.limit]
        ],
        next_after=found[asked.limit - 1].id if len(found) > asked.limit else None,
    )


class ListTopics(Arguments, kw_only=True, frozen=True):
    """The topics of which channel."""

    channel: ChannelRef
    name_contains: Name | None = None
    limit: Limit = 30
    older_than: Annotated[
        Number | None, Meta(description="To go on: the `next_older_than` of the last page.")
    ] = None


class TopicEntry(Struct, kw_only=True):
    """A topic."""

    name: str
    newest_message_id: int
    is_followed: bool
    is_muted: bool


class Topics(Outcome, kw_only=True):
    """Topics, the most recent first. `next_older_than` is null where there are no more."""

    channel: ChannelName
    topics: list[TopicEntry]
    next_older_than: int | None


async def list_topics(call: ToolCall, asked: ListTopics) -> Topics:
    """List the topics of a channel, the most recent first."""
    channel = channel_called(call, asked.channel)
    known = await topics_of(call.agent, channel.id)
    state, user = call.agent.state, call.agent.user
    wanted = (asked.name_contains or "").casefold()
    subscription = state.subscription(user.id, channel.id)
    matching = (
        one
        for one in known
        if (asked.older_than is None or one.newest_id < asked.older_than)
        and wanted in topic_shown(one.name).casefold()
    )
    found = list(islice(matching, asked.limit + 1))
    shown = found[: asked.limit]
    set_to = {one.name: state.visibility(user.id, channel.id, topic_key(one.name)) for one in shown}
    return Topics(
        channel=channel_name(channel),
        topics=[
            TopicEntry(
                name=topic_shown(one.name),
                newest_message_id=one.newest_id,
                is_followed=set_to[one.name] is Visibility.FOLLOWED,
                is_muted=is_muted(set_to[one.name], subscription),
            )
            for one in shown
        ],
        next_older_than=shown[-1].newest_id if len(found) > len(shown) else None,
    )


# People


class ListPeople(Arguments, kw_only=True, frozen=True):
    """Which people."""

    name_contains: Name | None = None
    channel: Annotated[
        ChannelRef | None, Meta(description="Only its subscribers. A channel's ID or name.")
    ] = None
    limit: Limit = 50
    after: Annotated[Number, Meta(description="To go on: the `next_after` of the last page.")] = 0


class PersonEntry(Struct, kw_only=True):
    """An account."""

    id: int
    name: str
    mention: Annotated[str, Meta(description="What mentions them in a message, and tells them.")]
    is_bot: bool


class People(Outcome, kw_only=True):
    """Active accounts, in the order of their IDs. `next_after` is null where there are no more."""

    people: list[PersonEntry]
    next_after: int | None


async def list_people(call: ToolCall, asked: ListPeople) -> People:
    """List the people and bots that you may know of, who are active."""
    state = call.agent.state
    wanted = (asked.name_contains or "").casefold()
    among = None if asked.channel is None else _subscribers(call, asked.channel)
    matching = (
        user
        for user in call.agent.people()
        if user.id > asked.after
        and user.is_active
        and not user.is_system_bot
        and wanted in user.full_name.casefold()
        and (among is None or user.id in among)
    )
    found = list(islice(matching, asked.limit + 1))
    shown = found[: asked.limit]
    return People(
        people=[_person(state, user) for user in shown],
        next_after=shown[-1].id if len(found) > len(shown) else None,
    )


def _subscribers(call: ToolCall, ref: int | str) -> BitMap:
    state, user = call.agent.state, call.agent.user
    channel = channel_called(call, ref)
    if not channel_access.sees_subscribers(state, user, channel):
        raise Refused("Your owner doesn't have permission to see this channel's subscribers.")
    return BitMap(state.subscribers(channel.id))


def _person(state: State, user: User) -> PersonEntry:
    is_unique = len(state.users.by_name.keys(user.full_name)) == 1
    said = user.full_name if is_unique else f"{user.full_name}|{user.id}"
    return PersonEntry(id=user.id, name=user.full_name, mention=f"@**{said}**", is_bot=user.is_bot)


# What is unread


class ListUnread(Arguments, kw_only=True, frozen=True):
    """Which conversations."""

    include_muted: bool = False
    limit: Limit = 30
    older_than: Annotated[
        Number | None, Meta(description="To go on: the `next_older_than` of the last page.")
    ] = None


class UnreadConversation(Struct, kw_only=True):
    """What is unread of a topic, or of a direct conversation."""

    channel: ChannelName | None = None
    topic: str | None = None
    people: list[PersonName] | None = None
    is_muted: bool
    count: int
    mentions: Annotated[int, Meta(description="How many of them mention your owner.")]
    first_unread_id: int
    newest_unread_id: int


class UnreadConversations(Outcome, kw_only=True):
    """Conversations, that of the newest unread message first. `next_older_than` is null where there
    are no more."""

    conversations: list[UnreadConversation]
    next_older_than: int | None
    only_newest_counted: Annotated[
        bool, Meta(description="Whether there are more unread messages than are counted here.")
    ]


async def list_unread(call: ToolCall, asked: ListUnread) -> UnreadConversations:
    """List what your owner has not read, by conversation, the newest first. To read it, ask for
    what is newer than the message before `first_unread_id`."""
    agent, reach = call.agent, call.agent.reach

    def look(state: State) -> UnreadConversations:
        return _unread(state, agent.user, reach, asked)

    return await agent.node.log.with_unread(agent.user.id, look)


def _unread(state: State, reader: User, reach: Reach, asked: ListUnread) -> UnreadConversations:
    unread = state.unread.of(state, reader.id)
    is_cut = len(unread.all) > UNREAD
    newest = BitMap(range(unread.all[-UNREAD], unread.all.max() + 1)) if is_cut else unread.all
    found: list[UnreadConversation] = []
    for channel_id, ids in unread.channels.items():
        if reach.reaches(channel_id):
            found += _unread_topics(state, reader, channel_id, ids & newest, unread.mentions)
    if reach.directs:
        for direct_id, ids in unread.directs.items():
            if ids := ids & newest:
                members = state.directs[direct_id].members
                people = [person_name(state, reader, one) for one in members]
                found.append(
                    UnreadConversation(
                        people=people, is_muted=False, **_counted(ids, unread.mentions)
                    )
                )
    found = [
        one
        for one in found
        if (asked.include_muted or not one.is_muted)
        and (asked.older_than is None or one.newest_unread_id < asked.older_than)
    ]
    shown = heapq.nlargest(asked.limit, found, key=attrgetter("newest_unread_id"))
    return UnreadConversations(
        conversations=shown,
        next_older_than=shown[-1].newest_unread_id if len(found) > len(shown) else None,
        only_newest_counted=is_cut,
    )


def _unread_topics(
    state: State, reader: User, channel_id: int, ids: BitMap, mentions: BitMap
) -> list[UnreadConversation]:
    if not ids:
        return []
    channel = channel_name(state.channels[channel_id])
    subscription = state.subscription(reader.id, channel_id)
    known = state.topics.of_channel[channel_id]
    return [
        UnreadConversation(
            channel=channel,
            topic=topic_shown(known[key].name),
            is_muted=is_muted(state.visibility(reader.id, channel_id, key), subscription),
            **_counted(some, mentions),
        )
        for key, some in state.unread.by_topic(channel_id, ids)
    ]


def _counted(ids: BitMap, mentions: BitMap) -> dict[str, Any]:
    return {
        "count": len(ids),
        "mentions": ids.intersection_cardinality(mentions),
        "first_unread_id": ids.min(),
        "newest_unread_id": ids.max(),
    }
