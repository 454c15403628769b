"""The topics of a channel that somebody can read."""

import asyncio
import heapq
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.channels import Channel
from tertulia.model.users import User
from tertulia.service.caller import Caller
from tertulia.store import queries

LOOKUPS: Final = 5000
"""Topics, multiplied by the stretches of a subscription, that are looked up in one step."""


class TopicByNewest(Struct, frozen=True):
    """A topic, and the newest of its messages that the reader can read."""

    name: str
    newest_id: int


async def topics_of(caller: Caller, channel_id: int) -> Iterable[TopicByNewest]:
    """The topics of the channel as of now, the most recent first. Refused where the caller cannot
    read it. A channel can have 100,000 topics: they are made while they are iterated over."""
    state = caller.state
    user = caller.user if caller.user_id is not None else None
    channel = permissions.readable_channel(state, user, channel_id)
    if user is None or channel.history_public:
        known = state.topics.by_newest_message[channel.id][::-1]
        return (TopicByNewest(topic.name, topic.last_message_id) for topic in known)
    return await _received(caller, user, channel)


async def _received(caller: Caller, user: User, channel: Channel) -> Iterable[TopicByNewest]:
    """The topics of the messages that the user received, with the newest of those, which comes
    first. All of it in steps, between which others have their turn."""
    subscription = caller.state.subscription(user.id, channel.id)
    if subscription is None or not subscription.spans:
        return ()
    first = min(after for after, _ in subscription.spans)
    found: list[TopicByNewest] = []
    others: list[tuple[str, str]] = []
    known = caller.state.topics.by_newest_message[channel.id][::-1]
    at_once = max(LOOKUPS // len(subscription.spans), 1)
    for begin in range(0, len(known), at_once):
        for topic in known[begin : begin + at_once]:
            if subscription.covers(topic.last_message_id):
                found.append(TopicByNewest(topic.name, topic.last_message_id))
            elif topic.last_message_id > first:
                others.append((topic.key, topic.name))
        await asyncio.sleep(0)
    # The newest message of the others was sent while the user was not subscribed.
    parts = [found]
    for begin in range(0, len(others), at_once):
        some = dict(others[begin : begin + at_once])
        newest = await caller.node.store.read(
            queries.newest_by_topic, channel.id, list(some), subscription.spans
        )
        part = [TopicByNewest(some[key], newest_id) for key, newest_id in newest.items()]
        parts.append(sorted(part, key=_newest_first))
    return heapq.merge(*parts, key=_newest_first)


def _newest_first(one: TopicByNewest) -> int:
    return -one.newest_id
