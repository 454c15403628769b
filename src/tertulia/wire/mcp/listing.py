"""Tools that list channels, topics, people, and unread conversations."""

import heapq
from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.domain.channels.topics import is_muted
from tertulia.model.access_keys import Reach
from tertulia.model.channels import topic_key
from tertulia.model.errors import Refused
from tertulia.model.user_topics import Visibility
from tertulia.model.users import User
from tertulia.service.messages.reading import topics_of
from tertulia.state.state import State
from tertulia.wire.http.parameters import Doc
from tertulia.wire.mcp.objects import (
    ChannelRef,
    ChannelSummary,
    PersonSummary,
    channel_summary,
    display_topic,
    find_channel,
    iso,
    person_summary,
)
from tertulia.wire.mcp.tool import Arguments, Name, Number, ToolCall, ToolResult

T = TypeVar("T")

Limit = Annotated[int, Meta(ge=1, le=100, description="Items per page.")]
NextAfter = Annotated[Number, Doc("For the next page: `next_after` of the previous page.")]
NextOlderThan = Annotated[
    Number | None, Doc("For the next page: `next_older_than` of the previous page.")
]
UNREAD: Final = 5000
"""The number of newest unread messages that list_unread counts."""
_DESCRIPTION: Final = 200


class NoArguments(Arguments, kw_only=True, frozen=True):
    pass


class WhoAmIResult(ToolResult, kw_only=True):
    """The agent, and what its key allows."""

    agent: str
    acts_for: PersonSummary
    organization: str
    may_write: bool
    sees_direct_messages: bool
    channels: Annotated[
        list[ChannelSummary] | None,
        Doc("The channels that you can access; null for all that your owner can access."),
    ]
    now: Annotated[str, Doc("ISO 8601, UTC.")]


def _page(items: Iterable[T], limit: int, key: Callable[[T], int]) -> tuple[list[T], int | None]:
    """Return the first `limit` items, and the key of the last of them if there are more."""
    page = list(islice(items, limit + 1))
    return page[:limit], key(page[limit - 1]) if len(page) > limit else None


async def who_am_i(call: ToolCall, _: NoArguments) -> WhoAmIResult:
    """Get the user that you act for, and what your key allows."""
    agent = call.agent
    key, reach = agent.key, agent.reach
    return WhoAmIResult(
        agent=key.name,
        acts_for=person_summary(agent.state, agent.user, agent.user.id),
        organization=agent.state.realm.name,
        may_write=reach.may_write,
        sees_direct_messages=reach.directs,
        channels=None
        if reach.channel_ids is None
        else [channel_summary(channel) for channel in agent.channels()],
        now=iso(int(agent.now)),
    )


class ListChannelsArguments(Arguments, kw_only=True, frozen=True):
    name_contains: Name | None = None
    subscribed_only: Annotated[bool, Doc("Only channels that your owner is subscribed to.")] = False
    limit: Limit = 50
    after: NextAfter = 0


class ChannelEntry(Struct, kw_only=True):
    """A channel."""

    id: int
    name: str
    description: str
    is_private: bool
    is_archived: bool
    is_subscribed: bool
    may_write: Annotated[bool, Doc("Whether your owner can post in the channel.")]


class ListChannelsResult(ToolResult, kw_only=True):
    """Channels by ID. `next_after` is null on the last page."""

    channels: list[ChannelEntry]
    next_after: int | None


async def list_channels(call: ToolCall, args: ListChannelsArguments) -> ListChannelsResult:
    """List the channels that you can access."""
    state, user = call.agent.state, call.agent.user
    name_part = (args.name_contains or "").casefold()
    matching = (
        channel
        for channel in call.agent.channels()
        if channel.id > args.after
        and name_part in channel.name.casefold()
        and (not args.subscribed_only or state.is_subscribed(user.id, channel.id))
    )
    page, next_after = _page(matching, args.limit, attrgetter("id"))
    return ListChannelsResult(
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
            for channel in page
        ],
        next_after=next_after,
    )


class ListTopicsArguments(Arguments, kw_only=True, frozen=True):
    channel: ChannelRef
    name_contains: Name | None = None
    limit: Limit = 30
    older_than: NextOlderThan = None


class TopicSummary(Struct, kw_only=True):
    """A topic."""

    name: str
    newest_message_id: int
    is_followed: bool
    is_muted: bool


class ListTopicsResult(ToolResult, kw_only=True):
    """Topics, most recent first. `next_older_than` is null on the last page."""

    channel: ChannelSummary
    topics: list[TopicSummary]
    next_older_than: int | None


async def list_topics(call: ToolCall, args: ListTopicsArguments) -> ListTopicsResult:
    """List the topics of a channel, most recent first."""
    channel = find_channel(call, args.channel)
    topics = await topics_of(call.agent, channel.id)
    state, user = call.agent.state, call.agent.user
    name_part = (args.name_contains or "").casefold()
    subscription = state.subscription(user.id, channel.id)
    matching = (
        topic
        for topic in topics
        if (args.older_than is None or topic.newest_id < args.older_than)
        and name_part in display_topic(topic.name).casefold()
    )
    page, next_older_than = _page(matching, args.limit, attrgetter("newest_id"))
    visibility = {
        topic.name: state.visibility(user.id, channel.id, topic_key(topic.name)) for topic in page
    }
    return ListTopicsResult(
        channel=channel_summary(channel),
        topics=[
            TopicSummary(
                name=display_topic(topic.name),
                newest_message_id=topic.newest_id,
                is_followed=visibility[topic.name] is Visibility.FOLLOWED,
                is_muted=is_muted(visibility[topic.name], subscription),
            )
            for topic in page
        ],
        next_older_than=next_older_than,
    )


class ListPeopleArguments(Arguments, kw_only=True, frozen=True):
    name_contains: Name | None = None
    channel: Annotated[
        ChannelRef | None, Doc("Only the subscribers of this channel, by ID or name.")
    ] = None
    limit: Limit = 50
    after: NextAfter = 0


class PersonEntry(Struct, kw_only=True):
    """A person or bot."""

    id: int
    name: str
    mention: Annotated[str, Doc("Write this in a message to mention and notify them.")]
    is_bot: bool


class ListPeopleResult(ToolResult, kw_only=True):
    """Active people and bots by ID. `next_after` is null on the last page."""

    people: list[PersonEntry]
    next_after: int | None


async def list_people(call: ToolCall, args: ListPeopleArguments) -> ListPeopleResult:
    """List the active people and bots that you can see."""
    state = call.agent.state
    name_part = (args.name_contains or "").casefold()
    subscribers = None if args.channel is None else _subscribers(call, args.channel)
    matching = (
        user
        for user in call.agent.people()
        if user.id > args.after
        and user.is_active
        and not user.is_system_bot
        and name_part in user.full_name.casefold()
        and (subscribers is None or user.id in subscribers)
    )
    page, next_after = _page(matching, args.limit, attrgetter("id"))
    return ListPeopleResult(people=[_person(state, user) for user in page], next_after=next_after)


def _subscribers(call: ToolCall, ref: int | str) -> BitMap:
    state, user = call.agent.state, call.agent.user
    channel = find_channel(call, ref)
    if not channel_access.sees_subscribers(state, user, channel):
        raise Refused("Your owner doesn't have permission to see this channel's subscribers.")
    return BitMap(state.subscribers(channel.id))


def _person(state: State, user: User) -> PersonEntry:
    is_unique = len(state.users.by_name.keys(user.full_name)) == 1
    name = user.full_name if is_unique else f"{user.full_name}|{user.id}"
    return PersonEntry(id=user.id, name=user.full_name, mention=f"@**{name}**", is_bot=user.is_bot)


class ListUnreadArguments(Arguments, kw_only=True, frozen=True):
    include_muted: bool = False
    limit: Limit = 30
    older_than: NextOlderThan = None


class UnreadConversation(Struct, kw_only=True):
    """The unread messages of a topic or of a direct message conversation."""

    channel: ChannelSummary | None = None
    topic: str | None = None
    people: list[PersonSummary] | None = None
    is_muted: bool
    count: int
    mentions: Annotated[int, Doc("How many of the messages mention your owner.")]
    first_unread_id: int
    newest_unread_id: int


class ListUnreadResult(ToolResult, kw_only=True):
    """Conversations, most recent first. `next_older_than` is null on the last page."""

    conversations: list[UnreadConversation]
    next_older_than: int | None
    only_newest_counted: Annotated[
        bool, Doc("Whether there were too many unread messages, so only the newest are counted.")
    ]


async def list_unread(call: ToolCall, args: ListUnreadArguments) -> ListUnreadResult:
    """List your owner's unread messages by conversation, most recent first. To read them, ask for
    messages newer than the one before `first_unread_id`."""
    agent, reach = call.agent, call.agent.reach

    return await agent.node.log.with_unread(
        agent.user.id, lambda state: _unread(state, agent.user, reach, args)
    )


def _unread(
    state: State, reader: User, reach: Reach, args: ListUnreadArguments
) -> ListUnreadResult:
    unread = state.unread.of(state, reader.id)
    is_cut = len(unread.all) > UNREAD
    newest = BitMap(range(unread.all[-UNREAD], unread.all.max() + 1)) if is_cut else unread.all
    conversations: list[UnreadConversation] = []
    for channel_id, ids in unread.channels.items():
        if reach.reaches(channel_id):
            conversations += _unread_topics(
                state, reader, channel_id, ids & newest, unread.mentions
            )
    if reach.directs:
        for direct_id, ids in unread.directs.items():
            if ids := ids & newest:
                members = state.directs[direct_id].members
                people = [person_summary(state, reader, member_id) for member_id in members]
                conversations.append(
                    UnreadConversation(
                        people=people, is_muted=False, **_counts(ids, unread.mentions)
                    )
                )
    conversations = [
        conversation
        for conversation in conversations
        if (args.include_muted or not conversation.is_muted)
        and (args.older_than is None or conversation.newest_unread_id < args.older_than)
    ]
    page = heapq.nlargest(args.limit, conversations, key=attrgetter("newest_unread_id"))
    return ListUnreadResult(
        conversations=page,
        next_older_than=page[-1].newest_unread_id if len(conversations) > len(page) else None,
        only_newest_counted=is_cut,
    )


def _unread_topics(
    state: State, reader: User, channel_id: int, ids: BitMap, mentions: BitMap
) -> list[UnreadConversation]:
    if not ids:
        return []
    channel = channel_summary(state.channels[channel_id])
    subscription = state.subscription(reader.id, channel_id)
    topics = state.topics.of_channel[channel_id]
    return [
        UnreadConversation(
            channel=channel,
            topic=display_topic(topics[key].name),
            is_muted=is_muted(state.visibility(reader.id, channel_id, key), subscription),
            **_counts(topic_ids, mentions),
        )
        for key, topic_ids in state.unread.by_topic(channel_id, ids)
    ]


def _counts(ids: BitMap, mentions: BitMap) -> dict[str, Any]:
    return {
        "count": len(ids),
        "mentions": ids.intersection_cardinality(mentions),
        "first_unread_id": ids.min(),
        "newest_unread_id": ids.max(),
    }
