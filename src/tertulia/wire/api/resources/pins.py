"""Pinned messages of channels. Not of the reference's interface: this server's."""

from typing import Annotated

from tertulia.domain.messages import pins
from tertulia.service.messages.pins import pin_message, pins_of
from tertulia.wire.api.objects.pins import PinObject, pin_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class GetPins(Params, kw_only=True, frozen=True):
    """The pinned messages of a channel."""

    stream_id: Annotated[Int, Path()]
    allow_empty_topic_name: bool = False


class Pins(Answer, kw_only=True):
    """Those that were pinned last first."""

    pins: list[PinObject]


async def get_pins(call: Call, params: GetPins) -> Pins:
    """The pinned messages of a channel that the caller can read, of all its topics: 50 at most.
    What they say is asked for as that of other messages, by their IDs. Not of the reference's
    interface: this server's."""
    return Pins(
        pins=[
            pin_object(pin, empty_topic_name=params.allow_empty_topic_name)
            for pin in pins_of(call, params.stream_id)
        ]
    )


class OnePin(Params, kw_only=True, frozen=True):
    """A message of a channel."""

    message_id: Annotated[Int, Path()]


async def pin(call: Call, params: OnePin) -> Answer:
    """Pin a message in its channel, for everybody who can read it. For who may post in the channel,
    and who administers it; one that is pinned stays as it is. Clients that have the capability
    `server_extensions`, or name the event type, are told (`pins`). Not of the reference's
    interface: this server's."""
    await pin_message(call, params.message_id)
    return Answer()


async def unpin(call: Call, params: OnePin) -> Answer:
    """Take the pin of a message away, whoever's it is. For those who may pin it."""
    await call.submit(pins.unpin, params.message_id)
    return Answer()
