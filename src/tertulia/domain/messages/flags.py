"""Marking messages as read or unread, and setting flags."""

from collections.abc import Sequence

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.model.changes import FlagsChanged, MessagesRead, MessagesUnread
from tertulia.model.channels import topic_key
from tertulia.model.errors import Conflict, Refused
from tertulia.model.messages import Flag, Message, MessagePlace, UnreadMessage
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.unread import UnreadIndex
from tertulia.state.unread_bitmaps import Unread


class KnownMessage(Struct, frozen=True, kw_only=True):
    """A message that the actor can read, with their flags on it."""

    message: Message
    flags: Flag
    is_read: bool
    is_mentioned: bool


class FlagUpdate(Struct, frozen=True, kw_only=True):
    """The number of changed messages, and the channels whose messages were ignored."""

    changed: int = 0
    ignored: frozenset[int] = frozenset()


def _is_new(context: CommandContext, known: KnownMessage) -> bool:
    """Whether the actor doesn't have a record of the message yet."""
    return not (
        known.flags & Flag.RECORD or context.state.received(context.actor.id, known.message)
    )


def mark_read(context: CommandContext, messages: Sequence[KnownMessage]) -> Decision[FlagUpdate]:
    """Mark the messages as read."""
    ids = tuple(known.message.id for known in messages if not known.is_read)
    if not ids:
        return Decision(FlagUpdate())
    change = MessagesRead(user_id=context.actor.id, message_ids=ids)
    return Decision(FlagUpdate(changed=len(ids)), (change,))


def mark_unread(context: CommandContext, messages: Sequence[KnownMessage]) -> Decision[FlagUpdate]:
    """Mark the messages as unread. Messages of archived channels, and of channels that the actor
    isn't subscribed to, can't be unread and are ignored."""
    state, actor = context.state, context.actor
    ignored: set[int] = set()
    unread: list[UnreadMessage] = []
    recorded: list[int] = []
    for known in messages:
        message = known.message
        channel_id = message.channel_id
        if channel_id is not None and (
            not state.is_subscribed(actor.id, channel_id) or state.channels[channel_id].is_archived
        ):
            ignored.add(channel_id)
            continue
        if not known.is_read:
            continue
        if channel_id is not None and not known.flags & Flag.RECORD:
            subscription = state.subscriptions[(channel_id, actor.id)]
            if message.id <= state.unread_since(subscription):
                recorded.append(message.id)
        others: tuple[int, ...] = ()
        if channel_id is None:
            members = state.directs[message.direct_id].members
            others = tuple(user_id for user_id in members if user_id != actor.id)
        unread.append(
            UnreadMessage(
                id=message.id,
                channel_id=channel_id,
                topic=message.topic,
                others=others,
                mentioned=known.is_mentioned,
            )
        )
    updated = FlagUpdate(changed=len(unread), ignored=frozenset(ignored))
    if not unread:
        return Decision(updated)
    change = MessagesUnread(user_id=actor.id, messages=tuple(unread), recorded=tuple(recorded))
    return Decision(updated, (change,))


def change(
    context: CommandContext, messages: Sequence[KnownMessage], flag: Flag, added: bool
) -> Decision[FlagUpdate]:
    """Set or clear a sparse flag on the messages."""
    changed = [known for known in messages if bool(known.flags & flag) is not added]
    if not changed:
        return Decision(FlagUpdate())
    return Decision(
        FlagUpdate(changed=len(changed)),
        (
            FlagsChanged(
                user_id=context.actor.id,
                message_ids=tuple(known.message.id for known in changed),
                flag=flag,
                added=added,
                recorded=tuple(k.message.id for k in changed if added and _is_new(context, k)),
            ),
        ),
    )


# Marking all unread messages of a conversation, which must be loaded (`state.unread`).

MAX_MARKED = 50_000
"""The most messages that one change marks."""


def mark_everything_read(context: CommandContext) -> Decision[bool]:
    """Mark up to `MAX_MARKED` unread messages as read, newest first. Return whether none are left.
    Raise Conflict if unread messages aren't loaded."""
    ids = _unread_ids(context)
    is_all = len(ids) <= MAX_MARKED
    change = MessagesRead(
        user_id=context.actor.id, message_ids=tuple(ids[-MAX_MARKED:]), everything=is_all
    )
    return Decision(is_all, (change,))


def mark_channel_read(context: CommandContext, channel_id: int) -> Decision[None]:
    """Mark all messages of the channel as read. Raise NoSuchChannel, Conflict."""
    _visible(context, channel_id)
    return _read(context, _unread(context).channels.get(channel_id, ()))


def mark_topic_read(context: CommandContext, channel_id: int, topic: str) -> Decision[None]:
    """Mark all messages of the topic as read. Raise NoSuchChannel, Conflict, or Refused for a topic
    that the actor can't see."""
    _visible(context, channel_id)
    key = topic_key(topic)
    state = context.state
    known = state.topics.of_channel[channel_id].get(key)
    if known is None or not channel_access.reads_message(
        state, context.actor, MessagePlace(id=known.last_message_id, channel_id=channel_id)
    ):
        raise Refused("This topic doesn't exist.")
    unread = _unread(context).channels.get(channel_id)
    return _read(
        context,
        ()
        if unread is None
        else unread & state.unread.channels[channel_id].topics.get(key, BitMap()),
    )


def mark_given_read(context: CommandContext, message_ids: Sequence[int]) -> Decision[None]:
    """Mark these messages as read, except those that already are. Raise Conflict."""
    unread = _unread_ids(context)
    return _read(context, [m for m in message_ids if m in unread])


def _visible(context: CommandContext, channel_id: int) -> None:
    channel_access.visible_channel(context.state, context.actor, channel_id=channel_id)


def _unread(context: CommandContext) -> Unread:
    return _unread_index(context).of(context.state, context.actor.id)


def _unread_ids(context: CommandContext) -> BitMap:
    return _unread_index(context).unread_ids(context.state, context.actor.id)


def _unread_index(context: CommandContext) -> UnreadIndex:
    index = context.state.unread
    if index.missing(context.state, context.actor.id):
        raise Conflict
    return index


def _read(context: CommandContext, message_ids: BitMap | Sequence[int]) -> Decision[None]:
    if not message_ids:
        return Decision(None)
    change = MessagesRead(user_id=context.actor.id, message_ids=tuple(sorted(message_ids)))
    return Decision(None, (change,))
