"""The base class of events, and their encoding."""

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from tertulia.delivery.queue import Numbering

_encoder = msgspec.json.Encoder()


class Event(Struct, kw_only=True, tag_field="type"):
    """The base of all events. The `id` is added when an event is encoded."""


class HeartbeatEvent(Event, kw_only=True, tag="heartbeat"):
    """A heartbeat: nothing happened, but the connection is alive."""


class EncodedEvent(NamedTuple):
    """An event as bytes, including its ID."""

    type: str
    body: bytes


def with_id(event: Event, event_id: int) -> bytes:
    """Return the event as JSON, with its ID first."""
    return b'{"id":%d,' % event_id + _encoder.encode(event)[1:]


def encoded(event: Event, numbering: Numbering, seq: int, index: int) -> EncodedEvent:
    """Return the event as bytes. `index` is its position among the events of its entry; raises
    OverflowError if that is too large to number."""
    body = with_id(event, numbering.of_entry(seq, index))
    return EncodedEvent(str(event.__struct_config__.tag), body)


FEATURE_LEVEL: Final = 496
SERVICE_VERSION: Final = "12.0"
"""The Zulip release with the same API. Clients refuse releases that are too old for them."""
MERGE_BASE: Final = SERVICE_VERSION
