"""Messages and direct conversations: tables, folds, recent writes, and sends, so that a repeated
request doesn't send a message twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from itertools import takewhile
from sys import getsizeof
from typing import TYPE_CHECKING, Final

import msgspec
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.changes import AnyChange, MessageSent
from tertulia.model.channels import Topic, topic_key
from tertulia.model.messages import DirectConversation, Flag, Message, PendingPreview
from tertulia.model.nouns import Noun
from tertulia.model.numbers import Counter
from tertulia.model.ranges import ids_of
from tertulia.state.attachments import claim, release
from tertulia.state.folds import FOLDS
from tertulia.state.pins import forget_pins, take_pins_along
from tertulia.state.tables import Inverted, Table, Unique

if TYPE_CHECKING:
    from tertulia.state.state import State

MAX_WRITE_BYTES = 8 * 1024 * 1024
"""The memory for remembered items in bytes, enough for about 50,000 messages. Of forgotten items,
only `floor` is known: the latest entry that wrote to any of them. A command that read the database
before `floor` reads again."""
_ENTRY_BYTES = 170
"""Bytes of an ID with its dictionary entry (measured)."""


def message_in(thing: Hashable) -> int | None:
    """Return the ID of the message that the item is or belongs to; None for a conversation."""
    match thing:
        case int():
            return thing
        case (("reactions" | "submessages"), int(message_id), *_):
            return message_id
        case _:
            return None


def entries_of(message: Message) -> tuple[Hashable, ...]:
    """Return the items that are written when the message changes or its whole topic is renamed."""
    channel_id, key, _ = message.conversation
    return message.id, renaming(channel_id, key)


def renaming(channel_id: int | None, key: str) -> Hashable:
    """Return the item that is written when a whole topic is renamed, in place of each message."""
    return "renamed", channel_id, key


def moving(channel_id: int | None, key: str) -> Hashable:
    """Return the item that is written when messages move into or out of a topic, but not when
    messages are sent."""
    return "moved", channel_id, key


def _size(item: Hashable) -> int:
    """Return the size of the item in memory, in bytes."""
    if not isinstance(item, tuple):
        return _ENTRY_BYTES
    # Names such as "reactions" are shared.
    return _ENTRY_BYTES + getsizeof(item) + sum(map(getsizeof, item[1:]))


class RecentWrites:
    """The newest entry that wrote to each item. Items are messages by ID, conversations by key,
    additions to a message by name and ID, and more."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()
        self.size = 0
        """The size of the remembered items in bytes."""
        self.floor = 0

    def note(self, things: Iterable[Hashable], seq: int) -> None:
        """Record that an entry writes to these items."""
        for thing in things:
            if thing not in self._last:
                self.size += _size(thing)
            self._last[thing] = seq
            self._last.move_to_end(thing)
        while self.size > MAX_WRITE_BYTES:
            oldest, self.floor = self._last.popitem(last=False)
            self.size -= _size(oldest)

    def since(self, seq: int, things: Iterable[Hashable]) -> bool:
        """Whether one of the items was, or may have been, written after that entry."""
        if self.floor > seq:
            return True
        return any(self._last.get(thing, 0) > seq for thing in things)

    def after(self, seq: int) -> list[Hashable] | None:
        """Return all items that were written after that entry, newest first; None if some of them
        are forgotten."""
        if self.floor > seq:
            return None
        newest_first = reversed(self._last.items())
        return [thing for thing, _ in takewhile(lambda written: written[1] > seq, newest_first)]


class DirectConversationTable(Table[DirectConversation]):
    """Direct conversations. Their members never change."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_members = Unique(self, lambda conversation: conversation.members)
        self.of_user = Inverted(self, lambda conversation: conversation.members)
        """The IDs of an account's conversations."""


@FOLDS.of(changes.PreviewsGivenUp)
def _(state: State, change: changes.PreviewsGivenUp) -> None:
    forget_previews(state, change.message_id)


def await_previews(state: State, message_id: int) -> None:
    """Record that the message has waited for link previews since the entry that is being folded."""
    state.pending_previews.put(PendingPreview(message_id=message_id, seq=state.seq + 1))


def forget_previews(state: State, message_id: int) -> None:
    """Record that the message no longer waits for link previews."""
    if message_id in state.pending_previews:
        state.pending_previews.remove(message_id)


@FOLDS.of(changes.MessageSent)
def _(state: State, change: changes.MessageSent) -> None:
    message = change.message
    state.counters.put(Counter(name="messages", last=message.id))
    state.recent_writes.note((message.conversation,), state.seq + 1)
    if message.channel_id is not None:
        key, name = topic_key(message.topic), message.topic
        channel = state.channels[message.channel_id]
        topic = state.topics.get((channel.id, key))
        # Equal texts and numbers of records that stay are the same objects, to save memory.
        if topic is None:
            name = key if name == key else name
            topic = Topic(
                channel_id=channel.id, key=key, name=name, last_message_id=0, message_count=0
            )
        state.topics.put(
            msgspec.structs.replace(
                topic,
                name=topic.name if topic.name == name else name,
                last_message_id=message.id,
                message_count=topic.message_count + 1,
            )
        )
        # The channel's row is written only for the first message of a day.
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
        state.directs.put(msgspec.structs.replace(conversation, last_message_id=message.id))
    state.sent.note(change)
    state.unread.sent(message)
    claim(state, message.id, change.attachment_ids)
    if change.awaits_previews:
        await_previews(state, message.id)
    for user_id, flag in change.flags.items():
        state.unread.flag((user_id,), (message.id,), flag, added=True)
    if change.readers:
        state.unread.mark(change.readers, (message.id,), read=True)
    if change.widget is not None:
        state.counters.put(Counter(name="submessages", last=change.widget.id))


_RECENTLY = 86400


@FOLDS.of(changes.FlagsChanged)
def _(state: State, change: changes.FlagsChanged) -> None:
    if change.recorded:
        state.unread.flag((change.user_id,), change.recorded, Flag.RECORD, added=True)
        state.unread.mark((change.user_id,), change.recorded, read=True)
    state.unread.flag((change.user_id,), change.message_ids, change.flag, added=change.added)


@FOLDS.of(changes.MessagesRead)
def _(state: State, change: changes.MessagesRead) -> None:
    state.unread.mark((change.user_id,), change.message_ids, read=True)


@FOLDS.of(changes.ReadStateImported)
def _(state: State, change: changes.ReadStateImported) -> None:
    every = BitMap(range(change.first_id, change.last_id + 1))
    for some, user_ids in change.groups:
        state.unread.mark(user_ids, ids_of(some, every), read=True)


@FOLDS.of(changes.MessagesUnread)
def _(state: State, change: changes.MessagesUnread) -> None:
    if change.recorded:
        state.unread.flag((change.user_id,), change.recorded, Flag.RECORD, added=True)
    state.unread.mark((change.user_id,), tuple(m.id for m in change.messages), read=False)


@FOLDS.of(changes.MessageEdited)
def _(state: State, change: changes.MessageEdited) -> None:
    message = change.message
    state.recent_writes.note((message.id,), state.seq + 1)
    state.unread.mentions_all(message)
    for user_id, flag in change.unmentioned.items():
        state.unread.flag((user_id,), (message.id,), flag, added=False)
    for user_id, flag in change.mentioned.items():
        state.unread.flag((user_id,), (message.id,), flag, added=True)
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
    # This runs once for a group, which may be thousands of people.
    for some, user_ids in change.lost:
        state.unread.forget(user_ids, ids_of(some, moved))
    for some, user_ids in change.marked_read:
        state.unread.mark(user_ids, ids_of(some, moved), read=True)
    for some, user_ids in change.recorded:
        state.unread.flag(user_ids, ids_of(some, moved), Flag.RECORD, added=True)
    for some, user_ids in change.mentioned:
        mentioned = ids_of(some, moved)
        state.unread.flag(user_ids, mentioned, Flag.CHANNEL_WILDCARD_MENTIONED, added=True)


def _rename_in_moves(state: State, old: tuple[int, str], new: tuple[int, str], name: str) -> None:
    """Update moves in progress from or to a renamed topic. End those that would only respell some
    of its messages, or move them to the name that all of them have now."""
    for move in list(state.topic_moves):
        origin, there = (
            (move.channel_id, topic_key(move.topic)),
            (move.new_channel_id, topic_key(move.new_topic)),
        )
        if origin == old and there in {old, new}:
            state.topic_moves.remove(move.id)
            continue
        if origin == old:
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


REMEMBERED_SENDS: Final = 10_000
"""The number of remembered sends. The oldest are forgotten first."""
RECALLED_SENDS: Final = REMEMBERED_SENDS
"""The number of the log's last entries that are searched for sends when the state is loaded, so
that repeated sends are recognized after a restart."""

_Key = tuple[int, str]
"""The sender, and a digest of the request."""


def request_digest(queue_id: str, local_id: str, *asked: str) -> str:
    """Return a digest of what a client asked to send, such as destination and content.

    Some clients use a local ID for several messages, so the content is part of the digest. It's
    stored in the log's entry, because the message may be edited or moved before the send is
    repeated; the IDs are its salt.
    """
    parts = (queue_id, local_id, *asked)
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def channel_destination(channel_id: int, topic: str) -> tuple[str, ...]:
    """Return a topic in the form that `request_digest` takes."""
    return "channel", str(channel_id), topic_key(topic)


def direct_destination(members: Iterable[int]) -> tuple[str, ...]:
    """Return a direct conversation in the form that `request_digest` takes."""
    return "direct", *map(str, sorted(members))


class SentMessages:
    """The newest messages that were sent with a queue ID and a local ID."""

    def __init__(self, directs: DirectConversationTable) -> None:
        self._directs = directs
        self._ids: OrderedDict[_Key, int] = OrderedDict()

    def note(self, change: AnyChange) -> None:
        """Remember the message if it was sent with a queue ID and a local ID."""
        if not isinstance(change, MessageSent) or not (change.queue_id and change.local_id):
            return
        digest = change.request_digest or self._digest(change, change.queue_id, change.local_id)
        self._ids[change.message.sender_id, digest] = change.message.id
        while len(self._ids) > REMEMBERED_SENDS:
            self._ids.popitem(last=False)

    def _digest(self, change: MessageSent, queue_id: str, local_id: str) -> str:
        """Return the digest of a send that was stored without one, by version 0.1."""
        message = change.message
        if message.direct_id is not None:
            destination = direct_destination(self._directs[message.direct_id].members)
        else:
            destination = channel_destination(message.channel_id or 0, message.topic)
        return request_digest(queue_id, local_id, *destination, message.content, "")

    def recall(self, changes: Iterable[AnyChange]) -> None:
        """Remember the sends among the log's last entries, oldest first."""
        for change in changes:
            self.note(change)

    def find(self, sender_id: int, digest: str) -> int | None:
        """Return the ID of the message that the same request already sent, if any."""
        return self._ids.get((sender_id, digest))
