"""Events of pinned messages, to clients that know of them."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, TypeVar

from tertulia.model.changes import MessagePinned, MessageUnpinned
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.pins import PinObject, pin_object
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.projections.reactions import follows_message, message_audience

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


PROJECTIONS: Final[Projections] = (
    PinProjection(MessagePinned, "add"),
    PinProjection(MessageUnpinned, "remove"),
)
