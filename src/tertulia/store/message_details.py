"""Details of messages: reactions, submessages, and edits."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter

import msgspec
from msgspec import Struct

from tertulia.model.edits import Arrival
from tertulia.model.messages import Flag, Message, MessageEdit, Submessage
from tertulia.model.reactions import EmojiKind, Reaction
from tertulia.store import editing, log_entries, message_marks, queries, topics
from tertulia.store.database import Connection
from tertulia.store.message_marks import holders


class MessageDetails(Struct, frozen=True):
    reactions: Sequence[Reaction] = ()
    """Reactions, in the order in which they were added."""
    submessages: Sequence[Submessage] = ()
    """Submessages, in the order of their IDs."""
    edits: Sequence[MessageEdit] = ()
    """Edits, newest first."""


NO_DETAILS = MessageDetails()
EDITS_BYTES = 1024 * 1024
"""The most bytes of previous content and HTML in a page of messages."""
MAX_RENAMES = 10
"""The most renames of its topic that a message includes, newest first. Renaming a topic is cheap,
but each of its messages would return all of the renames. The message's history has the rest."""
MAX_ARRIVALS = 100
"""The most messages of a move that are sent in full to users to whom they are new."""
ARRIVALS_BYTES = 1024 * 1024
"""The most bytes of content and HTML of these messages."""
MAX_DETAILS = 2000
"""The most reactions, submessages, and flags of these messages, except that the newest message is
always sent."""


class DetailedMessage(Struct, frozen=True):
    """A message for one reader, as of the log entry `head`."""

    head: int
    message: Message
    relation: message_marks.Relation
    details: MessageDetails
    holders: tuple[int, ...]
    """Users who have a record of it although it wasn't delivered to them."""


def detailed_message(
    connection: Connection, user_id: int, message_id: int
) -> DetailedMessage | None:
    messages = queries.messages(connection, [message_id])
    if not messages:
        return None
    return DetailedMessage(
        head=log_entries.head(connection),
        message=messages[0],
        relation=message_marks.relations(connection, user_id, [message_id])[message_id],
        details=details_of(connection, [message_id]).get(message_id, NO_DETAILS),
        holders=holders(connection, message_id),
    )


def details_of(connection: Connection, message_ids: Sequence[int]) -> dict[int, MessageDetails]:
    """Return the details of those messages that have any."""
    if not message_ids:
        return {}
    dialect = connection.dialect
    among = dialect.among("message_id")
    # Previous texts are read afterwards, up to the limit.
    sizes: dict[tuple[int, int], int] = {}
    reactions: dict[int, list[Reaction]] = defaultdict(list)
    submessages: dict[int, list[Submessage]] = defaultdict(list)
    edits: dict[int, list[MessageEdit]] = defaultdict(list)
    # One query for all three, because most messages have none and a round trip costs more.
    for what, *row in connection.query(
        f"SELECT 'edit', message_id, seq, at, user_id, NULL, NULL, was_topic, topic,"
        f" was_channel_id, channel_id, {editing.TEXT_SIZE} FROM message_edits WHERE {among}"
        " UNION ALL SELECT 'edit', messages.id, renames.seq, renames.at, renames.user_id, NULL,"
        " NULL, renames.was_topic, renames.topic, NULL, NULL, -1"
        f" FROM {topics.RENAMES} AND renames.seq > COALESCE((SELECT older.seq FROM topic_renames"
        " AS older WHERE older.topic_id = messages.topic_id ORDER BY older.seq DESC"
        f" LIMIT 1 OFFSET {MAX_RENAMES}), 0) WHERE {dialect.among('messages.id')}"
        " UNION ALL SELECT 'reaction', message_id, seq, neutral, user_id, kind, code, name, NULL,"
        f" NULL, NULL, 0 FROM reactions WHERE {among}"
        " UNION ALL SELECT 'part', message_id, id, 0, sender_id, kind, content, NULL, NULL, NULL,"
        f" NULL, 0 FROM submessages WHERE {among} ORDER BY 3",
        [dialect.array(message_ids)] * 4,
    ):
        mid, number, flag, user_id, *texts = row
        match what:
            case "edit":
                edits[mid].append(editing.edit_of(row[:-1]))
                if row[-1] >= 0:
                    sizes[mid, number] = row[-1]
            case "reaction":
                kind, code, name, *_ = texts
                reactions[mid].append(
                    Reaction(
                        message_id=mid,
                        user_id=user_id,
                        kind=EmojiKind(kind),
                        code=code,
                        name=name,
                        neutral=bool(flag),
                    )
                )
            case _:
                kind, content, *_ = texts
                part = Submessage(
                    id=number, message_id=mid, sender_id=user_id, kind=kind, content=content
                )
                submessages[mid].append(part)
    if sizes:
        _add_texts(connection, edits, sizes)
    return {
        mid: MessageDetails(
            reactions.get(mid, ()), submessages.get(mid, ()), edits.get(mid, [])[::-1]
        )
        for mid in reactions.keys() | submessages.keys() | edits.keys()
    }


def _add_texts(
    connection: Connection,
    edits: Mapping[int, list[MessageEdit]],
    sizes: Mapping[tuple[int, int], int],
) -> None:
    """Add the previous texts to edits, newest first, up to `EDITS_BYTES`."""
    chosen: list[tuple[int, int]] = []
    room = EDITS_BYTES
    for key in sorted(sizes, key=itemgetter(1), reverse=True):
        room -= sizes[key]
        if room < 0:
            break
        chosen.append(key)
    ids, seqs = {key[0] for key in chosen}, {key[1] for key in chosen}
    texts = editing.texts_before(connection, sorted(ids), sorted(seqs)) if chosen else {}
    replace = msgspec.structs.replace
    for message_id, of_message in edits.items():
        for index, edit in enumerate(of_message):
            if (message_id, edit.seq) not in sizes:
                continue
            content, rendered = texts.get((message_id, edit.seq), (None, None))
            of_message[index] = replace(
                edit,
                was_content=content,
                was_rendered=rendered,
                text_omitted=content is None,
            )


def arrivals(connection: Connection, message_ids: Sequence[int]) -> list[Arrival]:
    """Return the newest of the messages (ascending) with details and all users' flags, as many
    as a move sends in full."""
    newest = message_ids[-MAX_ARRIVALS:]
    counts = _detail_counts(connection, newest)
    sizes = queries.text_sizes(connection, newest)
    chosen: list[int] = []
    total = size = 0
    for message_id in reversed(newest):
        total += counts[message_id]
        size += sizes.get(message_id, 0)
        if chosen and (total > MAX_DETAILS or size > ARRIVALS_BYTES):
            break
        chosen.append(message_id)
    chosen.reverse()
    with_parts = details_of(connection, chosen)
    flags: dict[int, dict[int, Flag]] = defaultdict(dict)
    for user_id, of_user in message_marks.flags_on(connection, chosen).items():
        for message_id, flag in of_user.items():
            flags[message_id][user_id] = flag
    return [
        Arrival(
            message_id=message.id,
            message=message,
            reactions=tuple(with_parts.get(message.id, NO_DETAILS).reactions),
            submessages=tuple(with_parts.get(message.id, NO_DETAILS).submessages),
            flags=flags[message.id],
        )
        for message in queries.messages(connection, chosen)
    ]


def _detail_counts(connection: Connection, message_ids: Sequence[int]) -> dict[int, int]:
    detail_counts: dict[int, int] = defaultdict(int)
    dialect = connection.dialect
    for table in ("message_flags", "reactions", "submessages"):
        for message_id, count in connection.query(
            f"SELECT message_id, COUNT(*) FROM {table} WHERE {dialect.among('message_id')}"
            " GROUP BY message_id",
            (dialect.array(message_ids),),
        ):
            detail_counts[message_id] += count
    return detail_counts


def from_sender(connection: Connection, sender_id: int, ids: Sequence[int]) -> tuple[int, ...]:
    """Return the messages among `ids` that a user sent, ascending."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT id FROM messages WHERE sender_id = ? AND {dialect.among('id')} ORDER BY id",
        (sender_id, dialect.array(ids)),
    )
    return tuple(mid for (mid,) in rows)
