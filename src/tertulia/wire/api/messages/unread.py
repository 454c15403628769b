"""Unread messages, starred messages, and recent conversations in the initial data that POST
/register returns."""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.channels.topics import is_muted
from tertulia.model.messages import Flag
from tertulia.model.user_topics import UserTopic
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.messages.objects import unread_key
from tertulia.wire.api.section import MadeOnce, SectionContext, Sections
from tertulia.wire.api.topics import display_topic
from tertulia.wire.http.responses import Fragment, Fragments, JsonParts, array_items, encode

MAX_UNREAD: Final = 50_000
"""The most unread messages that are sent: the newest."""
_CUTS: Final = 50
"""The list may be shorter by up to `MAX_UNREAD / _CUTS`, so that a few new messages don't change
where it begins."""


class UnreadDirect(Struct, kw_only=True):
    """Unread direct messages from one person, or from yourself."""

    other_user_id: int
    sender_id: int
    """The older name of `other_user_id`."""
    unread_message_ids: list[int]


class UnreadTopic(Struct):
    """Unread messages in a topic."""

    stream_id: int
    topic: str
    unread_message_ids: list[int]


class UnreadGroup(Struct, kw_only=True):
    """Unread messages in a group conversation."""

    user_ids_string: str
    """All participants, including yourself."""
    unread_message_ids: list[int]


class UnreadMessages(Struct, kw_only=True):
    """All unread messages, except `streams`, a list of `UnreadTopic`. Message IDs ascend."""

    count: int = 0
    """Doesn't count muted channels and topics."""
    pms: list[UnreadDirect] = []
    huddles: list[UnreadGroup] = []
    mentions: list[int] = []
    old_unreads_missing: bool = False


class RecentConversation(Struct, kw_only=True):
    """A direct conversation: its other participants in ascending order, and its newest message."""

    max_message_id: int
    user_ids: list[int]


def newest(context: SectionContext) -> dict[str, Any]:
    """The newest message's ID, or -1 if there are no messages."""
    return {"max_message_id": context.state.last_message_id or -1}


def unread(context: SectionContext) -> dict[str, Any]:
    """The viewer's unread messages; none for spectators."""
    if context.viewer is None:
        return {"unread_msgs": _unread_object(UnreadMessages(), [])}
    empty_topic_name = context.registration.capabilities.empty_topic_name
    return {
        "unread_msgs": unread_messages(
            context.state,
            context.viewer,
            context.node.fragments,
            context.made,
            limit=MAX_UNREAD,
            empty_topic_name=empty_topic_name,
        )
    }


def _unread_object(unread: UnreadMessages, topics: Iterable[bytes]) -> JsonParts:
    content = b'%b,"streams":[%b]}' % (encode(unread)[:-1], b",".join(topics))
    return JsonParts([Fragment(content)])  # It may be compressed in a thread.


def unread_messages(
    state: State,
    reader: User,
    fragments: Fragments,
    earlier: dict[int, MadeOnce],
    *,
    limit: int,
    empty_topic_name: bool,
) -> JsonParts:
    """Return up to `limit` of the newest unread messages by conversation. JSON that `earlier` steps
    made by channel is reused and added to."""
    unread = state.unread.of(state, reader.id)
    missing = len(unread.all) > limit
    first = _first_within(unread.all, limit) if missing else 0
    newest = BitMap(range(first, unread.all.max() + 1)) if missing else BitMap()

    def cut(ids: BitMap) -> BitMap:
        """Return the messages within the limit."""
        return ids & newest if missing and ids and ids.min() < first else ids

    rest = UnreadMessages(
        count=unread.all.intersection_cardinality(newest) if missing else len(unread.all),
        mentions=list(cut(unread.mentions)),
        old_unreads_missing=missing,
    )
    subscriptions = state.subscriptions.of_user[reader.id]
    streams: list[bytes] = []
    of_channels: dict[int, BitMap] = {}
    # There may be hundreds of channels, so each gets as little work as possible.
    for channel_id, every in sorted(unread.channels.items(), key=_BY_KEY):
        channel = state.unread.channels[channel_id]
        made = earlier.get(channel_id)
        if (
            made is None
            or made.every is not every
            or made.version != channel.version
            or made.first != first
        ):
            ids = cut(every)
            make = partial(_unread_topics, state, channel_id, ids, empty_topic_name)
            # Everyone who has read nothing in the channel has the same unread messages.
            shared = channel.made if ids is channel.all else {}
            topics = shared.get(empty_topic_name)
            if topics is None:
                topics = shared[empty_topic_name] = fragments.measured(make) if ids else b""
            made = MadeOnce(channel.version, every, first, ids, topics)
            earlier[channel_id] = made
        if not made.ids:
            continue
        streams.append(made.content)
        of_channels[channel_id] = made.ids
        if subscriptions[channel_id].is_muted:
            rest.count -= len(made.ids)
    user_topics: dict[int, list[UserTopic]] = defaultdict(list)
    for user_topic in state.user_topics.of_user[reader.id]:
        user_topics[user_topic.channel_id].append(user_topic)
    for channel_id in user_topics.keys() & of_channels.keys():
        ids, by_topic = of_channels[channel_id], state.unread.channels[channel_id].topics
        subscription = subscriptions[channel_id]
        is_usually_muted = subscription.is_muted
        for user_topic in user_topics[channel_id]:
            if is_muted(user_topic.visibility, subscription) != is_usually_muted:
                count = ids.intersection_cardinality(by_topic.get(user_topic.key, _NONE))
                rest.count += count if is_usually_muted else -count
    for direct_id, message_ids in sorted(unread.directs.items()):
        if not (newest_ids := list(cut(message_ids))):
            continue
        members = state.directs[direct_id].members
        if len(members) > 2:
            group = UnreadGroup(user_ids_string=unread_key(members), unread_message_ids=newest_ids)
            rest.huddles.append(group)
            continue
        other = next((user_id for user_id in members if user_id != reader.id), reader.id)
        rest.pms.append(
            UnreadDirect(other_user_id=other, sender_id=other, unread_message_ids=newest_ids)
        )
    return _unread_object(rest, streams)


def _first_within(ids: BitMap, limit: int) -> int:
    """Return where the newest `limit` messages begin, or a little later."""
    step = max(limit // _CUTS, 1)
    first: int = ids[-limit]
    return -(-first // step) * step


def _unread_topics(state: State, channel_id: int, ids: BitMap, empty_topic_name: bool) -> bytes:
    """Return a channel's unread messages as items of `streams`."""
    known = state.topics.of_channel[channel_id]
    unnamed = display_topic("", empty_topic_name=empty_topic_name)
    return array_items(
        UnreadTopic(channel_id, known[key].name or unnamed, list(some))
        for key, some in sorted(state.unread.by_topic(channel_id, ids), key=_BY_KEY)
    )


_NONE: Final = BitMap()
_BY_KEY: Final = itemgetter(0)


def starred(context: SectionContext) -> dict[str, Any]:
    """The viewer's starred messages in ascending order."""
    if context.viewer is None:
        return {"starred_messages": []}
    reader = context.state.unread.readers[context.viewer.id]
    return {"starred_messages": list(reader.with_any(Flag.STARRED))}


def recent_directs(context: SectionContext) -> dict[str, Any]:
    """The viewer's direct conversations, most recent first."""
    state, viewer = context.state, context.viewer
    direct_ids = (
        state.directs.of_user[viewer.id] if viewer is not None and viewer.reaches(None) else ()
    )
    conversations = [
        RecentConversation(
            max_message_id=conversation.last_message_id,
            user_ids=[user_id for user_id in conversation.members if user_id != viewer.id],
        )
        for conversation in (state.directs[direct_id] for direct_id in direct_ids)
        if viewer is not None and conversation.last_message_id
    ]
    conversations.sort(key=lambda conversation: -conversation.max_message_id)
    return {"recent_private_conversations": conversations}


SECTIONS: Final[Sections] = {
    ("message",): newest,
    ("message", "update_message_flags"): unread,
    ("starred_messages",): starred,
    ("recent_private_conversations",): recent_directs,
}
