"""Pinned messages on the wire."""

from collections.abc import Collection, Hashable, Iterable
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, Struct

from tertulia.domain.messages import pins
from tertulia.model.changes import MessagePinned, MessageUnpinned
from tertulia.model.pins import Pin
from tertulia.service.messages.reactions import pin_message, pins_of
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.reactions import follows_message, message_audience
from tertulia.wire.api.topics import topic_shown
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


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


P = TypeVar("P", MessagePinned, MessageUnpinned)

TYPE: Final = "pins"


class PinsEvent(Event, kw_only=True, tag=TYPE):
    """A message was pinned (`add`), or is not any more (`remove`). That pins went along with moved
    messages, or went with deleted ones, is told by the events of these."""

    op: str
    pin: PinObject


class PinProjection(Projection[P]):
    """A pin, to those who follow the message. (The reference's clients know no such event, and are
    told only where they name it.)"""

    for_all_public = True

    def __init__(self, of: type[P], op: str) -> None:
        self.of = of
        self._op = op

    def audience(self, state: State, change: P) -> Collection[int]:
        return message_audience(state, change.place, ())

    def view(self, context: ProjectionContext, change: P, viewer: Viewer) -> Hashable | None:
        capabilities = viewer.registration.capabilities
        knows = capabilities.server_extensions or TYPE in (viewer.registration.event_types or ())
        if not knows or not follows_message(context, change, (), viewer):
            return None
        return (capabilities.empty_topic_name,)

    def events(self, context: ProjectionContext, change: P, view: Any) -> Iterable[Event]:
        (empty_topic_name,) = view
        yield PinsEvent(op=self._op, pin=pin_object(change.pin, empty_topic_name=empty_topic_name))


class GetPins(Params, kw_only=True, frozen=True):
    """The pinned messages of a channel."""

    stream_id: Annotated[Int, Path()]
    allow_empty_topic_name: bool = False


class Pins(ApiResponse, kw_only=True):
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


async def pin(call: Call, params: OnePin) -> ApiResponse:
    """Pin a message in its channel, for everybody who can read it. For who may post in the channel,
    and who administers it; one that is pinned stays as it is. Clients that have the capability
    `server_extensions`, or name the event type, are told (`pins`). Not of the reference's
    interface: this server's."""
    await pin_message(call, params.message_id)
    return ApiResponse()


async def unpin(call: Call, params: OnePin) -> ApiResponse:
    """Take the pin of a message away, whoever's it is. For those who may pin it."""
    await call.submit(pins.unpin, params.message_id)
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    PinProjection(MessagePinned, "add"),
    PinProjection(MessageUnpinned, "remove"),
)
