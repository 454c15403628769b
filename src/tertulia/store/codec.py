"""Encoding records and changes for the database, and decoding them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import msgspec

from tertulia.model.changes import (
    AnyChange,
    DraftChanged,
    DraftsCreated,
    Entry,
    MessageEdited,
    MessageScheduled,
    MessageSent,
    MessagesMoved,
    ReminderSet,
    ScheduledMessageChanged,
    SnippetChanged,
    SnippetCreated,
    SubmessageAdded,
)
from tertulia.model.edits import Arrival
from tertulia.model.messages import Message
from tertulia.model.nouns import NOUNS, Noun
from tertulia.store.installation import NewerDatabase


class _Kind(msgspec.Struct):
    type: str


_encoder = msgspec.json.Encoder()
_change_decoder = msgspec.json.Decoder(AnyChange)
_kind_decoder = msgspec.json.Decoder(_Kind)
_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(AnyChange))
_record_decoders = {noun.table: msgspec.json.Decoder(noun.type) for noun in NOUNS}

CHUNK_BITS = 16
"""Messages whose IDs differ only in this many low bits share a row of `read_state`."""

TOPIC_NAME = (
    "(SELECT CASE WHEN messages.topic_name IS NOT NULL AND (messages.id > renamed_until"
    " OR messages.topic_since > renamed_seq) THEN messages.topic_name ELSE name END"
    " FROM message_topics WHERE message_topics.id = messages.topic_id)"
)
"""SQL for a message's topic name: as it was sent or moved, unless the topic was renamed since."""

MESSAGE_COLUMNS = ", ".join(
    (
        *(
            "messages.id",
            "messages.sender_id",
            "messages.sent_at",
            "messages.channel_id",
            TOPIC_NAME,
        ),
        *("messages.direct_id", "messages.content", "messages.rendered", "messages.client"),
        *("messages.has_link", "messages.has_image", "messages.has_attachment", "messages.is_me"),
        "messages.mentions_all",
    )
)

OF_TOPIC = "topic_id = (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?)"
"""The condition that a message is in a topic. Parameters: channel and key."""


def encode(record: Any) -> str:
    return _encoder.encode(record).decode()


def decode_record(noun: Noun, text: str) -> Any:
    return _record_decoders[noun.table].decode(text)


def encode_change(change: Any) -> str:
    """Encode a change for the log, without the texts that people wrote, which only their own tables
    have."""
    replace = msgspec.structs.replace
    if isinstance(change, MessageSent):
        message = replace(change.message, content="", rendered="")
        widget = change.widget
        if widget is not None:
            widget = replace(widget, content="")
        return encode(replace(change, message=message, widget=widget))
    if isinstance(change, MessageEdited):
        message = replace(change.message, content="", rendered="")
        change = replace(change, message=message, was_content="", was_rendered="")
    if isinstance(change, SubmessageAdded):
        change = replace(change, submessage=replace(change.submessage, content=""))
    if isinstance(change, MessagesMoved) and change.arrivals:
        change = replace(change, arrivals=tuple(_blank(arrival) for arrival in change.arrivals))
    return encode(with_records(change, lambda table, record: replace(record, **BLANK[table])))


def _blank(arrival: Arrival) -> Arrival:
    replace = msgspec.structs.replace
    parts = tuple(replace(part, content="") for part in arrival.submessages)
    return replace(arrival, message=None, submessages=parts)


BLANK: Mapping[str, Mapping[str, str]] = {
    "drafts": {"topic": "", "content": ""},
    "snippets": {"title": "", "content": ""},
    "scheduled_messages": {"topic": "", "content": "", "rendered": ""},
    "reminders": {"note": "", "content": "", "rendered": ""},
}
"""The texts, by table, that the log leaves out of a record because they must be deleted with it."""
_RECORDS: Mapping[type, tuple[str, str]] = {
    DraftsCreated: ("drafts", "drafts"),
    DraftChanged: ("drafts", "draft"),
    SnippetCreated: ("snippets", "snippet"),
    SnippetChanged: ("snippets", "snippet"),
    MessageScheduled: ("scheduled_messages", "message"),
    ScheduledMessageChanged: ("scheduled_messages", "message"),
    ReminderSet: ("reminders", "reminder"),
}
"""The table of each change's records, and the field that has them."""


NEEDS_TEXTS: Final = (MessageSent, MessageEdited, MessagesMoved, SubmessageAdded, *_RECORDS)
"""Changes with texts that people wrote, which the log doesn't have."""


def with_records(change: Any, revised: Callable[[str, Any], Any]) -> Any:
    """Return the change with `revised(table, record)` in place of each record that has separate
    texts."""
    if (result := _RECORDS.get(type(change))) is None:
        return change
    table, field = result
    value = getattr(change, field)
    if isinstance(value, tuple):
        new: Any = tuple(revised(table, record) for record in value)
    else:
        new = revised(table, value)
    return msgspec.structs.replace(change, **{field: new})


def decode_entry(seq: int, at: float, actor_id: int | None, text: str) -> Entry:
    """Decode an entry, whose message texts are still to be filled in. Raise NewerDatabase if only a
    newer version knows its type."""
    try:
        return Entry(seq, at, actor_id, _change_decoder.decode(text))
    except msgspec.ValidationError:
        kind = _kind_decoder.decode(text).type
        if kind in _KINDS:
            raise
        raise NewerDatabase(
            f"Entry {seq} of the log has the unknown type '{kind}': it was written by a newer"
            " version of Tertulia. Install that version or a later one."
        ) from None


def message_of(row: tuple[Any, ...]) -> Message:
    return Message(
        id=row[0],
        sender_id=row[1],
        sent_at=row[2],
        channel_id=row[3],
        topic=row[4] or "",
        direct_id=row[5],
        content=row[6],
        rendered=row[7],
        client=row[8],
        has_link=bool(row[9]),
        has_image=bool(row[10]),
        has_attachment=bool(row[11]),
        is_me=bool(row[12]),
        mentions_all=bool(row[13]),
    )
