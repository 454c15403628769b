"""Messages: the newest one, what is unread or starred, and with whom the viewer wrote."""

from typing import Any, Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain.channels.user_topics import is_muted
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.wire.api.objects.messages import unread_key
from tertulia.wire.api.objects.topics import topic_shown
from tertulia.wire.api.objects.user_topics import muted_topics as shown_muted_topics
from tertulia.wire.api.objects.user_topics import user_topic
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext

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
    """All that is unread; every list of IDs ascends."""

    count: int = 0
    """Without those of muted channels and topics."""
    pms: list[UnreadDirect] = []
    streams: list[UnreadTopic] = []
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
        return {"unread_msgs": UnreadMessages()}
    empty_topic_name = context.registration.capabilities.empty_topic_name
    return {
        "unread_msgs": unread_messages(
            context.state, context.viewer, limit=MAX_UNREAD, empty_topic_name=empty_topic_name
        )
    }


def unread_messages(
    state: State, reader: User, *, limit: int, empty_topic_name: bool
) -> UnreadMessages:
    """The newest unread messages, at most `limit`, by conversation."""
    found = state.unread.of(state, reader.id)
    missing = len(found.all) > limit
    newest = found.all[-limit:]

    def kept(message_ids: BitMap) -> list[int]:
        return list(message_ids & newest if missing else message_ids)

    shown = UnreadMessages(mentions=kept(found.mentions), old_unreads_missing=missing)
    own = {
        (one.channel_id, one.key): one.visibility for one in state.user_topics.of_user[reader.id]
    }
    for channel_id in sorted(found.channels):
        topics, known = found.channels[channel_id], state.topics.of_channel[channel_id]
        subscription = state.subscription(reader.id, channel_id)
        for key in sorted(topics):
            if not (newest_ids := kept(topics[key])):
                continue
            name = topic_shown(known[key].name, empty_topic_name=empty_topic_name)
            shown.streams.append(
                UnreadTopic(stream_id=channel_id, topic=name, unread_message_ids=newest_ids)
            )
            if not is_muted(own.get((channel_id, key), Visibility.INHERIT), subscription):
                shown.count += len(newest_ids)
    for direct_id, message_ids in sorted(found.directs.items()):
        if not (newest_ids := kept(message_ids)):
            continue
        shown.count += len(newest_ids)
        members = state.directs[direct_id].members
        if len(members) > 2:
            group = UnreadGroup(user_ids_string=unread_key(members), unread_message_ids=newest_ids)
            shown.huddles.append(group)
            continue
        other = next((user_id for user_id in members if user_id != reader.id), reader.id)
        shown.pms.append(
            UnreadDirect(other_user_id=other, sender_id=other, unread_message_ids=newest_ids)
        )
    return shown


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
