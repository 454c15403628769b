"""Messages: the newest one, what is unread or starred, and with whom the viewer wrote."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache, partial
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
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.api.topics import topic_shown
from tertulia.wire.api.user_topics import muted_topics as shown_muted_topics
from tertulia.wire.api.user_topics import user_topic
from tertulia.wire.http.fragments import (
    Fragments,
    JsonParts,
    encode,
)

MAX_UNREAD: Final = 50_000
"""Of more unread messages than that, the newest are sent."""


class UnreadDirect(Struct, kw_only=True):
    """What is unread of one person's messages, or of one's notes to oneself."""

    other_user_id: int
    sender_id: int
    """The same, as it was called before."""
    unread_message_ids: list[int]


class UnreadTopic(Struct, kw_only=True):
    """What is unread in a topic."""

    stream_id: int
    topic: str
    unread_message_ids: list[int]


class UnreadGroup(Struct, kw_only=True):
    """What is unread of a direct conversation of several people."""

    user_ids_string: str
    """All of them, the viewer too."""
    unread_message_ids: list[int]


class UnreadMessages(Struct, kw_only=True):
    """All that is unread but for `streams`, a list of `UnreadTopic`. Lists of IDs ascend."""

    count: int = 0
    """Without those of muted channels and topics."""
    pms: list[UnreadDirect] = []
    huddles: list[UnreadGroup] = []
    mentions: list[int] = []
    old_unreads_missing: bool = False


class RecentConversation(Struct, kw_only=True):
    """A direct conversation: the others in it, ascending, and its newest message."""

    max_message_id: int
    user_ids: list[int]


def newest(context: SnapshotContext) -> dict[str, Any]:
    """The newest message; -1 where there is none."""
    return {"max_message_id": context.state.last_message_id or -1}


def unread(context: SnapshotContext) -> dict[str, Any]:
    """What the viewer has not read; a spectator reads nothing."""
    if context.viewer is None:
        return {"unread_msgs": _unread_object(UnreadMessages(), [])}
    empty_topic_name = context.registration.capabilities.empty_topic_name
    return {
        "unread_msgs": unread_messages(
            context.state,
            context.viewer,
            context.node.fragments,
            limit=MAX_UNREAD,
            empty_topic_name=empty_topic_name,
        )
    }


def _unread_object(shown: UnreadMessages, topics: Iterable[bytes]) -> JsonParts:
    return JsonParts([b'%b,"streams":[%b]}' % (encode(shown)[:-1], b",".join(topics))])


def unread_messages(
    state: State, reader: User, kept: Fragments, *, limit: int, empty_topic_name: bool
) -> JsonParts:
    """The newest unread messages, at most `limit`, by conversation: `UnreadMessages`, with its
    topics. What is unread of a channel is kept until that changes."""
    found = state.unread.of(state, reader.id)
    missing = len(found.all) > limit
    first = found.all[-limit] if missing else 0
    newest = BitMap(range(first, found.all.max() + 1)) if missing else BitMap()

    def cut(ids: BitMap) -> BitMap:
        """Those of the messages that are sent."""
        return ids & newest if missing and ids and ids.min() < first else ids

    of_channels = found.channels
    if missing:
        sent = ((channel_id, cut(ids)) for channel_id, ids in of_channels.items())
        of_channels = {channel_id: ids for channel_id, ids in sent if ids}

    shown = UnreadMessages(
        count=limit if missing else len(found.all),
        mentions=list(cut(found.mentions)),
        old_unreads_missing=missing,
    )
    own: dict[int, list[UserTopic]] = defaultdict(list)
    for one in state.user_topics.of_user[reader.id]:
        own[one.channel_id].append(one)
    subscriptions = state.subscriptions.of_user[reader.id]
    streams: list[bytes] = []
    channels = state.unread.channels
    # There may be hundreds: as little as can be is done for each.
    for channel_id in sorted(of_channels):
        ids, channel = of_channels[channel_id], channels[channel_id]
        # Whoever has read nothing of it has the same unread.
        is_all = ids is channel.all
        topics = channel.made.get(empty_topic_name) if is_all else None
        if topics is None:
            topics = kept.get(
                ("unread", channel_id, None if is_all else reader.id, empty_topic_name),
                (channel.version, None if is_all else _digest(ids)),
                partial(_unread_topics, state, channel_id, ids, empty_topic_name),
            ).content
            if is_all:
                channel.made[empty_topic_name] = topics
        streams.append(topics)
        if subscriptions[channel_id].is_muted:
            shown.count -= len(ids)
    for channel_id in own.keys() & of_channels.keys():
        ids, by_topic = of_channels[channel_id], channels[channel_id].topics
        subscription = subscriptions[channel_id]
        is_usually_muted = subscription.is_muted
        for one in own[channel_id]:
            if is_muted(one.visibility, subscription) != is_usually_muted:
                count = ids.intersection_cardinality(by_topic.get(one.key, _NONE))
                shown.count += count if is_usually_muted else -count
    for direct_id, message_ids in sorted(found.directs.items()):
        if not (newest_ids := list(cut(message_ids))):
            continue
        members = state.directs[direct_id].members
        if len(members) > 2:
            group = UnreadGroup(user_ids_string=unread_key(members), unread_message_ids=newest_ids)
            shown.huddles.append(group)
            continue
        other = next((user_id for user_id in members if user_id != reader.id), reader.id)
        shown.pms.append(
            UnreadDirect(other_user_id=other, sender_id=other, unread_message_ids=newest_ids)
        )
    return _unread_object(shown, streams)


def _unread_topics(state: State, channel_id: int, ids: BitMap, empty_topic_name: bool) -> bytes:
    """Items of `streams`: messages of a channel."""
    known = state.topics.of_channel[channel_id]
    return b",".join(
        b"%b%b}" % (_begun(channel_id, known[key].name, empty_topic_name), encode(list(some)))
        for key, some in sorted(state.unread.by_topic(channel_id, ids), key=_BY_KEY)
    )


def _digest(ids: BitMap) -> bytes:
    """What tells messages from others: the bitmap itself would be kept with the fragment."""
    return hashlib.blake2b(ids.serialize(), digest_size=16).digest()


_NONE: Final = BitMap()
_BY_KEY: Final = itemgetter(0)


@lru_cache(maxsize=8192)
def _begun(channel_id: int, name: str, empty_topic_name: bool) -> bytes:
    """How the JSON of an `UnreadTopic` begins."""
    topic = topic_shown(name, empty_topic_name=empty_topic_name)
    whole = encode(UnreadTopic(stream_id=channel_id, topic=topic, unread_message_ids=[]))
    return whole.removesuffix(b"[]}")


def starred(context: SnapshotContext) -> dict[str, Any]:
    """The messages that the viewer starred, ascending."""
    if context.viewer is None:
        return {"starred_messages": []}
    reader = context.state.unread.readers[context.viewer.id]
    return {"starred_messages": list(reader.with_any(Flag.STARRED))}


def recent_directs(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's direct conversations, that of the newest message first."""
    state, viewer = context.state, context.viewer
    own = () if viewer is None else state.directs.of_user[viewer.id]
    conversations = [
        RecentConversation(
            max_message_id=conversation.last_message_id,
            user_ids=[user_id for user_id in conversation.members if user_id != viewer.id],
        )
        for conversation in (state.directs[direct_id] for direct_id in own)
        if viewer is not None and conversation.last_message_id
    ]
    conversations.sort(key=lambda conversation: -conversation.max_message_id)
    return {"recent_private_conversations": conversations}


def muted_topics(context: SnapshotContext) -> dict[str, Any]:
    """The older form of the topics' settings, for clients that do not ask for the newer one."""
    event_types = context.registration.event_types
    if event_types is not None and "user_topic" in event_types:
        return {}
    if context.viewer is None:
        return {"muted_topics": []}
    shown = shown_muted_topics(
        context.state,
        context.viewer,
        empty_topic_name=context.registration.capabilities.empty_topic_name,
    )
    return {"muted_topics": shown}


def user_topics(context: SnapshotContext) -> dict[str, Any]:
    """The viewer's settings of topics that differ from the channel's."""
    own = () if context.viewer is None else context.state.user_topics.of_user[context.viewer.id]
    empty_topic_name = context.registration.capabilities.empty_topic_name
    return {"user_topics": [user_topic(one, empty_topic_name=empty_topic_name) for one in own]}


SECTIONS: Final[Sections] = {
    ("message",): newest,
    ("message", "update_message_flags"): unread,
    ("starred_messages",): starred,
    ("recent_private_conversations",): recent_directs,
    ("muted_topics",): muted_topics,
    ("user_topic",): user_topics,
}
