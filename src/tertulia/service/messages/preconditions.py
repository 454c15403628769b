"""What commands about messages read before they decide, at one entry of the log: the verb raises
Conflict where that was touched by a later entry."""

from collections.abc import Sequence

import msgspec

from tertulia.domain.channels.topics import Flags, TopicExcerpt, TopicMessage
from tertulia.domain.messages.deleting import MessagesToDelete
from tertulia.domain.messages.editing import Found, may_be_unread
from tertulia.log.log import Log
from tertulia.model.channels import topic_key
from tertulia.model.errors import Conflict, NoSuchMessage
from tertulia.model.messages import Flag, Message
from tertulia.state.organization import State
from tertulia.store import editing, history, message_details, queries
from tertulia.store.database import Connection

_NO_TOPIC = TopicExcerpt(lines=(), first_elsewhere=None)


_One = tuple[Message, dict[int, Flag], bool] | None


async def to_edit(log: Log, message_id: int) -> Found:
    """The message, and who has something to do with it. Refused where there is none."""
    head, looked = await log.store.read(lambda c: (history.head(c), _one(c, message_id)))
    if head.seq > log.state.seq:  # Another node wrote it.
        await log.reached(head.seq)
    return await _with_readers(log, _found(head.seq, looked))


async def _with_readers(log: Log, found: Found) -> Found:
    """The message with those who have read it, of those to whom it could be unread."""
    message, loaded = found.message, log.state.unread.readers
    read_by, others = set[int](), list[int]()
    for user_id in may_be_unread(log.state, message, found.flags):
        if user_id not in loaded:
            others.append(user_id)
        elif message.id in loaded[user_id].read:
            read_by.add(user_id)
    if others:
        read_by.update(await log.store.read(editing.read_by, message.id, others))
    return msgspec.structs.replace(found, read_by=frozenset(read_by))


def _one(connection: Connection, message_id: int) -> _One:
    messages = queries.messages(connection, [message_id])
    if not messages:
        return None
    parts = message_details.details_of(connection, [message_id]).get(
        message_id, message_details.NO_DETAILS
    )
    return messages[0], editing.flags_of(connection, message_id), bool(parts.submessages)


def _found(seq: int, looked: _One) -> Found:
    if looked is None:
        raise NoSuchMessage
    message, flags, has_widget = looked
    return Found(seq=seq, message=message, flags=flags, has_widget=has_widget)


async def to_move(
    log: Log, message_id: int, *, whole: bool, away: bool
) -> tuple[Found, TopicExcerpt]:
    """The message, and of its topic all (`whole`) or what moving this one concerns, perhaps to
    another channel (`away`). Refused where there is no such message."""

    def look(connection: Connection) -> tuple[_One, TopicExcerpt]:
        one = _one(connection, message_id)
        if one is None:
            return None, _NO_TOPIC
        excerpt = _excerpt(connection, [one[0]], whole=whole)
        holders, records = editing.records_on(connection, [line.id for line in excerpt.lines])
        concerned = [line.id for line in excerpt.lines] if whole else [message_id]
        newest = message_details.arrivals(connection, concerned) if away else ()
        return one, msgspec.structs.replace(
            excerpt, holders=holders, records=records, newest=newest
        )

    def conclude(state: State, looked: tuple[_One, TopicExcerpt]) -> tuple[Found, TopicExcerpt]:
        return _found(state.seq, looked[0]), looked[1]

    found, excerpt = await log.snapshot(None, look, conclude)
    return await _with_readers(log, found), excerpt


async def to_delete(log: Log, message_ids: Sequence[int]) -> MessagesToDelete:
    """Those of the messages that there are, with what deleting them concerns. Conflict where they
    are not of one conversation any more."""

    def look(
        connection: Connection,
    ) -> tuple[list[Message], TopicExcerpt, Flags, int]:
        found = queries.messages(connection, message_ids)
        last = 0
        if found and found[0].direct_id is not None:
            last = editing.last_direct_without(connection, found[0].direct_id, message_ids)
        excerpt = _excerpt(connection, found, whole=False) if found else _NO_TOPIC
        return found, excerpt, editing.flags_on(connection, message_ids), last

    def conclude(
        state: State, looked: tuple[list[Message], TopicExcerpt, Flags, int]
    ) -> MessagesToDelete:
        found, excerpt, flags, last = looked
        if len({message.conversation for message in found}) > 1:
            raise Conflict
        return MessagesToDelete(
            seq=state.seq,
            messages=found,
            excerpt=excerpt,
            flags=flags,
            direct_last_id=last,
        )

    return await log.snapshot(None, look, conclude)


def _excerpt(connection: Connection, messages: Sequence[Message], *, whole: bool) -> TopicExcerpt:
    """The messages' topic, or of it only these and the newest others."""
    one = messages[0]
    if one.channel_id is None:
        return _NO_TOPIC
    key = topic_key(one.topic)
    if whole:
        lines = editing.of_topic(connection, one.channel_id, key)
    else:
        ids = [message.id for message in messages]
        lines = editing.some_of_topic(connection, one.channel_id, key, ids)
    first = editing.first_without(connection, one.channel_id, [line[0] for line in lines])
    return TopicExcerpt(lines=[TopicMessage(*line) for line in lines], first_elsewhere=first)
