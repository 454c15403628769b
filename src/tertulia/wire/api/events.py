"""Events, as clients get them: their base, and their bytes."""

from typing import NamedTuple

import msgspec
from msgspec import Struct

from tertulia.delivery.event_ids import Numbering

_encoder = msgspec.json.Encoder()


class Event(Struct, kw_only=True, tag_field="type"):
    """The base of all events. Each gets its `id` when it is encoded."""


class HeartbeatEvent(Event, kw_only=True, tag="heartbeat"):
    """Nothing happened, and the connection is alive."""


class EncodedEvent(NamedTuple):
    """An event of an entry as it is sent, with its ID."""

    type: str
    body: bytes


def with_id(event: Event, event_id: int) -> bytes:
    """The event as it is sent, beginning with its ID."""
    return b'{"id":%d,' % event_id + _encoder.encode(event)[1:]


def encoded(event: Event, numbering: Numbering, seq: int, place: int) -> EncodedEvent:
    """An event as it is sent, at its place among those of an entry. OverflowError where these are
    too many."""
    body = with_id(event, numbering.of_entry(seq, place))
    return EncodedEvent(str(event.__struct_config__.tag), body)
