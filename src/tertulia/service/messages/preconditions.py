"""Reading the rows that commands about messages need, as of one entry of the log. Verbs raise
Conflict if a later entry has changed them."""

from collections.abc import Sequence

import msgspec

from tertulia.domain.channels.topics import Flags, TopicExcerpt, TopicMessage, TopicMessages
from tertulia.domain.messages import moving
from tertulia.domain.messages.deleting import MessagesToDelete
from tertulia.domain.messages.editing import LoadedMessage, may_be_unread
from tertulia.domain.messages.moving import BATCH, Move, MoveBatch, batch_size
from tertulia.log.log import Log
from tertulia.model.channels import topic_key
from tertulia.model.edits import TopicMove
from tertulia.model.errors import Conflict, NoSuchMessage
from tertulia.model.messages import Flag, Message, Propagation
from tertulia.model.users import User
from tertulia.state.decision import CommandContext
from tertulia.state.state import State
from tertulia.store import editing, installation, message_details, message_marks, queries, topics
from tertulia.store.database import Connection

_NO_TOPIC = TopicExcerpt(lines=(), first_elsewhere=None)


Conversation = tuple[int | None, str, int | None]
"""A conversation, as `Message.conversation`."""
_One = tuple[Message, dict[int, Flag], bool] | None


async def to_edit(log: Log, message_id: int) -> LoadedMessage:
    """Return the message with all users' flags. Raise NoSuchMessage."""
    head, looked = await log.store.read(
        lambda c: (installation.head_position(c), _one(c, message_id))
    )
    if head.seq > log.state.seq:  # Another node wrote it.
        await log.catching_up.reached(head.seq)
    return await _with_readers(log, _found(head.seq, looked))


async def _with_readers(log: Log, target: LoadedMessage) -> LoadedMessage:
    """Add the users who have read the message, among those for whom it could be unread."""
    message, loaded = target.message, log.state.unread.readers
    read_by, others = set[int](), list[int]()
    for user_id in may_be_unread(log.state, message, target.flags):
        if user_id not in loaded:
            others.append(user_id)
        elif message.id in loaded[user_id].read:
            read_by.add(user_id)
    if others:
        read_by.update(await log.store.read(message_marks.read_by, message.id, others))
    return msgspec.structs.replace(target, read_by=frozenset(read_by))


def _one(connection: Connection, message_id: int) -> _One:
    messages = queries.messages(connection, [message_id])
    if not messages:
        return None
    parts = message_details.details_of(connection, [message_id]).get(
        message_id, message_details.NO_DETAILS
    )
    return messages[0], message_marks.flags_of(connection, message_id), bool(parts.submessages)


def _found(seq: int, looked: _One) -> LoadedMessage:
    if looked is None:
        raise NoSuchMessage
    message, flags, has_widget = looked
    return LoadedMessage(seq=seq, message=message, flags=flags, has_widget=has_widget)


async def to_move(
    log: Log, actor: User, message_id: int, wanted: Move
) -> tuple[LoadedMessage, TopicExcerpt]:
    """Return the message, and the topic's rows that the actor's move affects. Raise NoSuchMessage,
    and as `moving.move`."""
    away = wanted.channel_id is not None
    if wanted.propagation is Propagation.ONE:
        return await rows_to_move(log, message_id, [message_id], away=away)
    loaded = await to_edit(log, message_id)
    now = log.clock()
    context = CommandContext(log.state, now, actor.id, actor.reach)
    limit = moving.age_limit(context, is_between=away)
    topic = await _topic_messages(log, loaded.message, None if limit is None else now - limit)
    excerpt = TopicExcerpt(lines=(), first_elsewhere=None, topic=topic)
    context = CommandContext(log.state, log.clock(), actor.id, actor.reach)
    plan = moving.plan_move(context, loaded, excerpt, wanted)
    if not plan.renames and len(plan.ids) <= plan.batch:
        loaded, excerpt = await rows_to_move(log, message_id, list(plan.ids), away=away)
    return loaded, msgspec.structs.replace(excerpt, topic=topic)


async def _topic_messages(log: Log, message: Message, since: float | None) -> TopicMessages:
    """Return all messages of the message's topic, and those sent at that UNIX time or later, if
    given. Other readers aren't delayed."""
    seq = log.state.seq
    await log.durability.settled()
    topic = (message.channel_id or 0, topic_key(message.topic))

    def look(connection: Connection) -> TopicMessages:
        ids, young = topics.ids_of_topic(connection, *topic, since)
        renames = topics.count_renames(connection, *topic)
        return TopicMessages(seq=seq, ids=ids, young=young, renames=renames)

    return await log.store.read(look)


async def rows_to_move(
    log: Log, message_id: int, ids: Sequence[int], *, away: bool
) -> tuple[LoadedMessage, TopicExcerpt]:
    """Return the message, and the rows that moving it and others of its topic affects. `away` means
    to another channel. Raise NoSuchMessage."""

    def look(connection: Connection) -> tuple[_One, TopicExcerpt]:
        message = _one(connection, message_id)
        if message is None:
            return None, _NO_TOPIC
        return message, _excerpt_to_move(connection, message[0].conversation, ids, away=away)

    def conclude(
        state: State, looked: tuple[_One, TopicExcerpt]
    ) -> tuple[LoadedMessage, TopicExcerpt]:
        return _found(state.seq, looked[0]), looked[1]

    loaded, excerpt = await log.snapshot(None, look, conclude)
    return await _with_readers(log, loaded), excerpt


def _excerpt_to_move(
    connection: Connection, conversation: Conversation, ids: Sequence[int], *, away: bool
) -> TopicExcerpt:
    excerpt = _excerpt(connection, conversation, ids)
    holders, records = message_marks.records_on(connection, ids)
    newest = message_details.arrivals(connection, ids) if away else ()
    return msgspec.structs.replace(excerpt, holders=holders, records=records, newest=newest)


async def to_move_next(log: Log, move: TopicMove) -> MoveBatch:
    """Return the next batch of a move: the newest messages that are left."""
    conversation = (move.channel_id, topic_key(move.topic), None)

    def look(connection: Connection) -> tuple[Sequence[int], bool, TopicExcerpt, _One]:
        topic = conversation[:2]
        # Every batch of a move to another channel writes to rows of the same people.
        most = BATCH if move.channel_id == move.new_channel_id else 2 * BATCH
        renames = topics.count_renames(connection, *topic)
        limit = batch_size(most, renames)
        ids = topics.newest_of_topic(connection, *topic, move.ranges, limit)
        if not ids:
            return ids, True, _NO_TOPIC, None
        # Clients that couldn't read them get only the newest messages of the first batch.
        away = move.channel_id != move.new_channel_id and not move.has_begun
        excerpt = _excerpt_to_move(connection, conversation, ids, away=away)
        anchor = _one(connection, move.anchor_id) if move.anchor_id in ids else None
        return ids, len(ids) < limit, excerpt, anchor

    def conclude(state: State, looked: tuple[Sequence[int], bool, TopicExcerpt, _One]) -> MoveBatch:
        ids, is_last, excerpt, item = looked
        return MoveBatch(
            move=move,
            seq=state.seq,
            found=None if item is None else _found(state.seq, item),
            excerpt=excerpt,
            ids=ids,
            is_last=is_last,
        )

    piece = await log.snapshot(None, look, conclude)
    if piece.found is None:
        return piece
    return msgspec.structs.replace(piece, found=await _with_readers(log, piece.found))


async def to_delete(log: Log, message_ids: Sequence[int]) -> MessagesToDelete:
    """Return the messages that exist, and the rows that deleting them affects. Raise Conflict if
    they are no longer in one conversation."""

    def look(
        connection: Connection,
    ) -> tuple[list[Message], TopicExcerpt, Flags, int]:
        messages = queries.messages(connection, message_ids, texts=False)
        last = 0
        if messages and messages[0].direct_id is not None:
            last = editing.last_direct_without(connection, messages[0].direct_id, message_ids)
        excerpt = _NO_TOPIC
        if messages:
            ids = [message.id for message in messages]
            excerpt = _excerpt(connection, messages[0].conversation, ids)
        return messages, excerpt, message_marks.flags_on(connection, message_ids), last

    def conclude(
        state: State, looked: tuple[list[Message], TopicExcerpt, Flags, int]
    ) -> MessagesToDelete:
        messages, excerpt, flags, last = looked
        if len({message.conversation for message in messages}) > 1:
            raise Conflict
        return MessagesToDelete(
            seq=state.seq,
            messages=messages,
            excerpt=excerpt,
            flags=flags,
            direct_last_id=last,
        )

    return await log.snapshot(None, look, conclude)


def _excerpt(
    connection: Connection, conversation: Conversation, ids: Sequence[int]
) -> TopicExcerpt:
    """Return these messages of a topic, and its newest others."""
    channel_id, key, _ = conversation
    if channel_id is None:
        return _NO_TOPIC
    lines = topics.some_of_topic(connection, channel_id, key, ids)
    first = editing.first_without(connection, channel_id, [line[0] for line in lines])
    return TopicExcerpt(lines=[TopicMessage(*line) for line in lines], first_elsewhere=first)
