"""Messages pinned in their channel."""

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, Final, TypeVar

from msgspec import Struct

from tertulia.domain.messages import pins
from tertulia.model.changes import MessagePinned, MessageUnpinned
from tertulia.model.pins import Pin
from tertulia.service.messages.reactions import pin_message
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    projected,
)
from tertulia.wire.api.reactions import follows_message, message_audience
from tertulia.wire.api.topics import display_topic
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class PinObject(Struct, kw_only=True):
    """A message that is pinned in its channel."""

    message_id: int
    stream_id: int
    topic: str
    pinned_by: Annotated[int, Doc("A user ID.")]
    pinned_at: Annotated[int, Doc("UNIX seconds.")]


def pin_object(pin: Pin, *, empty_topic_name: bool) -> PinObject:
    """The pin, as clients with or without the capability `empty_topic_name` expect it."""
    return PinObject(
        message_id=pin.message_id,
        stream_id=pin.channel_id,
        topic=display_topic(pin.topic, empty_topic_name=empty_topic_name),
        pinned_by=pin.pinned_by,
        pinned_at=pin.pinned_at,
    )


PinChange = MessagePinned | MessageUnpinned
P = TypeVar("P", MessagePinned, MessageUnpinned)

TYPE: Final = "pins"


class PinsEvent(Event, kw_only=True, tag=TYPE):
    """A message was pinned (`add`) or unpinned (`remove`). If a pinned message is moved or deleted,
    its pin follows without this event."""

    op: str
    pin: PinObject


def _view(context: ProjectionContext, change: PinChange, viewer: Viewer) -> Hashable | None:
    capabilities = viewer.registration.capabilities
    # Zulip's clients don't know the event, so it is only for clients that ask for it.
    is_known = capabilities.server_extensions or TYPE in (viewer.registration.event_types or ())
    if not is_known or not follows_message(context, change, (), viewer):
        return None
    return (capabilities.empty_topic_name,)


def _pin_event(of: type[P], op: str) -> Projection[P]:
    def events(_: ProjectionContext, change: P, view: Any) -> Iterable[Event]:
        (empty_topic_name,) = view
        yield PinsEvent(op=op, pin=pin_object(change.pin, empty_topic_name=empty_topic_name))

    return projected(
        of,
        _view,
        events,
        audience=lambda state, change: message_audience(state, change.place, ()),
        for_all_public=True,
    )


class PinsResponse(ApiResponse, kw_only=True):
    """The pins, newest first."""

    pins: list[PinObject]


async def get_pins(
    call: Call, stream_id: IntPath, allow_empty_topic_name: bool = False
) -> PinsResponse:
    """Get the pinned messages of a channel, from all of its topics that you can read. This endpoint
    is a Tertulia extension.

    At most 50 messages can be pinned. Fetch their content by their IDs like that of other messages.
    """
    user = call.user if call.user_id is not None else None
    return PinsResponse(
        pins=[
            pin_object(pin, empty_topic_name=allow_empty_topic_name)
            for pin in pins.readable_pins(call.state, user, stream_id)
        ]
    )


async def pin(call: Call, message_id: IntPath) -> None:
    """Pin a message in its channel for everyone who can read it. This endpoint is a Tertulia
    extension.

    Requires permission to post in the channel or to administer it. Pinning a pinned message has no
    effect. Clients with the capability `server_extensions`, and those that ask for the event type,
    get a `pins` event.
    """
    await pin_message(call, message_id)


async def unpin(call: Call, message_id: IntPath) -> None:
    """Unpin a message, no matter who pinned it.

    Requires permission to post in the channel or to administer it. This endpoint is a Tertulia
    extension.
    """
    await call.submit(pins.unpin, message_id)


PROJECTIONS: Final[Projections] = (
    _pin_event(MessagePinned, "add"),
    _pin_event(MessageUnpinned, "remove"),
)
