"""Pinned messages on the wire."""

from typing import Annotated

from msgspec import Meta, Struct

from tertulia.model.pins import Pin
from tertulia.wire.api.objects.topics import topic_shown


class PinObject(Struct, kw_only=True):
    """A message that is pinned in its channel."""

    message_id: int
    stream_id: int
    topic: str
    pinned_by: Annotated[int, Meta(description="An account.")]
    pinned_at: Annotated[int, Meta(description="UNIX seconds.")]


def pin_object(pin: Pin, *, empty_topic_name: bool) -> PinObject:
    """The pin, for a client that knows empty topics or does not."""
    return PinObject(
        message_id=pin.message_id,
        stream_id=pin.channel_id,
        topic=topic_shown(pin.topic, empty_topic_name=empty_topic_name),
        pinned_by=pin.pinned_by,
        pinned_at=pin.pinned_at,
    )
