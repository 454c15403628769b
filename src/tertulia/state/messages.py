"""Messages and direct conversations: table and folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tertulia.model import changes
from tertulia.model.channels import Topic, topic_key
from tertulia.model.messages import DirectConversation, Flag, PendingPreview
from tertulia.model.nouns import Noun
from tertulia.model.numbers import Counter
from tertulia.model.ranges import ids_of
from tertulia.state.attachments import claim, release
from tertulia.state.folds import Folds, revised
from tertulia.state.indexes import Inverted, Unique
from tertulia.state.pins import forget_pins, take_pins_along
from tertulia.state.recent_writes import moving, renaming
from tertulia.state.tables import Table

if TYPE_CHECKING:
    from tertulia.state.state import State


class DirectConversationTable(Table[DirectConversation]):
    """Direct conversations. Their members never change."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_members = Unique(self, lambda conversation: conversation.members)
        self.of_user = Inverted(self, lambda conversation: conversation.members)
        """The IDs of an account's conversations."""


FOLDS = Folds()


@FOLDS.of(changes.PreviewsGivenUp)
def _(state: State, change: changes.PreviewsGivenUp) -> None:
    forget_previews(state, change.message_id)


def await_previews(state: State, message_id: int) -> None:
    """Note that the message waits for link previews since the entry that is being folded."""
    state.pending_previews.put(PendingPreview(message_id=message_id, seq=state.seq + 1))


def forget_previews(state: State, message_id: int) -> None:
    """Note that the message waits for none."""
    if message_id in state.pending_previews:
        state.pending_previews.remove(message_id)


@FOLDS.of(changes.MessageSent)
def _(state: State, change: changes.MessageSent) -> None:
    message = change.message
    state.counters.put(Counter(name="messages", last=message.id))
    state.recent_writes.note((message.conversation,), state.seq + 1)
    if message.channel_id is not None:
        key = topic_key(message.topic)
        topic = state.topics.get((message.channel_id, key))
        state.topics.put(
            Topic(
                channel_id=message.channel_id,
                key=key,
                name=message.topic,
                last_message_id=message.id,
                message_count=topic.message_count + 1 if topic else 1,
            )
        )
        channel = state.channels[message.channel_id]
        # The channel's row is written for the first message of a day, not for each.
        if channel.first_message_id is None or (
            message.sent_at - (channel.last_message_at or 0) >= _RECENTLY
        ):
            state.channels.put(
                msgspec.structs.replace(
                    channel,
                    first_message_id=channel.first_message_id or message.id,
                    last_message_at=message.sent_at,
                )
            )
    else:
        if change.new_conversation is not None:
            state.directs.put(change.new_conversation)
            state.unread.began(change.new_conversation.id)
        conversation = state.directs[message.direct_id]
        state.directs.put(revised(conversation, {"last_message_id": message.id}))
    state.sent.note(change)
    state.unread.sent(message)
    claim(state, message.id, change.attachment_ids)
    if change.awaits_previews:
        await_previews(state, message.id)
    for user_id, flag in change.flags.items():
        state.unread.flag(user_id, (message.id,), flag, added=True)
    for user_id in change.readers:
        state.unread.mark(user_id, (message.id,), read=True)
    if change.widget is not None:
        state.counters.put(Counter(name="submessages", last=change.widget.id))


_RECENTLY = 86400


@FOLDS.of(changes.FlagsChanged)
def _(state: State, change: changes.FlagsChanged) -> None:
    if change.recorded:
        state.unread.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
        state.unread.mark(change.user_id, change.recorded, read=True)
    state.unread.flag(change.user_id, change.message_ids, change.flag, added=change.added)


@FOLDS.of(changes.MessagesRead)
def _(state: State, change: changes.MessagesRead) -> None:
    state.unread.mark(change.user_id, change.message_ids, read=True)


@FOLDS.of(changes.MessagesUnread)
def _(state: State, change: changes.MessagesUnread) -> None:
    if change.recorded:
        state.unread.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
    state.unread.mark(change.user_id, tuple(m.id for m in change.messages), read=False)


@FOLDS.of(changes.MessageEdited)
def _(state: State, change: changes.MessageEdited) -> None:
    message = change.message
    state.recent_writes.note((message.id,), state.seq + 1)
    state.unread.mentions_all(message)
    for user_id, flag in change.unmentioned.items():
        state.unread.flag(user_id, (message.id,), flag, added=False)
    for user_id, flag in change.mentioned.items():
        state.unread.flag(user_id, (message.id,), flag, added=True)
    claim(state, message.id, change.attached)
    release(state, message.id, change.detached)
    if change.awaits_previews:
        await_previews(state, message.id)
    else:
        forget_previews(state, message.id)


@FOLDS.of(changes.MessagesMoved)
def _(state: State, change: changes.MessagesMoved) -> None:
    old = (change.channel_id, topic_key(change.topic))
    new = (change.new_channel_id, topic_key(change.new_topic))
    touched = (renaming(*old),) if change.renames else change.message_ids
    places = ((*old, None), (*new, None), moving(*old), moving(*new))
    state.recent_writes.note((*touched, *places), state.seq + 1)
    _settle(state, change.topics, change.emptied, change.first_message_ids)
    moved = change.ids
    if change.renames:
        _rename_in_moves(state, old, new, change.new_topic)
    state.unread.moved(moved, old, new)
    take_pins_along(state, moved, change)
    for some, user_ids in change.lost:
        ids = ids_of(some, moved)
        for user_id in user_ids:
            state.unread.forget(user_id, ids)
    for some, user_ids in change.marked_read:
        ids = ids_of(some, moved)
        for user_id in user_ids:
            state.unread.mark(user_id, ids, read=True)
    for some, user_ids in change.recorded:
        ids = ids_of(some, moved)
        for user_id in user_ids:
            state.unread.flag(user_id, ids, Flag.RECORD, added=True)
    for some, user_ids in change.mentioned:
        ids = ids_of(some, moved)
        for user_id in user_ids:
            state.unread.flag(user_id, ids, Flag.CHANNEL_WILDCARD_MENTIONED, added=True)


def _rename_in_moves(state: State, old: tuple[int, str], new: tuple[int, str], name: str) -> None:
    """Continue moves in progress from a renamed topic, and to it. End those that would only respell
    some of its messages, or move them to the name that all of them have now."""
    for move in list(state.topic_moves):
        here, there = (
            (move.channel_id, topic_key(move.topic)),
            (move.new_channel_id, topic_key(move.new_topic)),
        )
        if here == old and there in {old, new}:
            state.topic_moves.remove(move.id)
            continue
        if here == old:
            move = msgspec.structs.replace(move, topic=name)
        if there == old:
            move = msgspec.structs.replace(move, new_topic=name)
        state.topic_moves.put(move)


FOLDS.puts(changes.TopicMoveStarted, "topic_moves", "move")
FOLDS.removes(changes.TopicMoveEnded, "topic_moves", "move_id")


@FOLDS.of(changes.MessagesDeleted)
def _(state: State, change: changes.MessagesDeleted) -> None:
    conversation = (change.channel_id, topic_key(change.topic), change.direct_id)
    state.recent_writes.note((*change.message_ids, conversation), state.seq + 1)
    _settle(state, change.topics, change.emptied, change.first_message_ids)
    if change.direct_id is not None:
        state.directs.put(
            msgspec.structs.replace(
                state.directs[change.direct_id], last_message_id=change.direct_last_id
            )
        )
    state.unread.deleted(
        change.message_ids, change.channel_id, topic_key(change.topic), change.direct_id
    )
    forget_pins(state, change.message_ids)
    for message_id in change.message_ids:
        release(state, message_id)
        forget_previews(state, message_id)


def _settle(
    state: State,
    topics: tuple[Topic, ...],
    emptied: tuple[tuple[int, str], ...],
    first_message_ids: Mapping[int, int | None],
) -> None:
    """Update topics and channels after messages were added or removed."""
    for key in emptied:
        state.topics.remove(key)
    for topic in topics:
        state.topics.put(topic)
    for channel_id, first in first_message_ids.items():
        channel = state.channels[channel_id]
        state.channels.put(msgspec.structs.replace(channel, first_message_id=first))
