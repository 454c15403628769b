"""Events of the flags that readers have on messages, and of what they have read."""

from collections.abc import Hashable, Iterable
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.model.changes import FlagsChanged, MessagesRead, MessagesUnread
from tertulia.model.messages import Flag
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.message_flags import flag_names
from tertulia.wire.api.objects.topics import topic_shown
from tertulia.wire.api.projection import ForOwner, ProjectionContext, Projections, Viewer, to_owner


class UnreadDetails(Struct, kw_only=True):
    """Where a message is that became unread."""

    type: str
    mentioned: bool | UnsetType = UNSET
    user_ids: list[int] | UnsetType = UNSET
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


class FlagsEvent(Event, kw_only=True, tag="update_message_flags"):
    """One's own messages gained or lost a flag. `operation` is what `op` was called before."""

    op: str
    operation: str
    flag: str
    messages: list[int]
    all: bool
    message_details: dict[str, UnreadDetails] | UnsetType = UNSET


def flags_event(
    op: str, flag: str, message_ids: Iterable[int], *, everything: bool = False
) -> FlagsEvent:
    """The messages gained the flag (`add`) or lost it (`remove`)."""
    return FlagsEvent(op=op, operation=op, flag=flag, messages=list(message_ids), all=everything)


class MessagesUnreadProjection(ForOwner[MessagesUnread]):
    """What one made unread again, to one's other clients."""

    of = MessagesUnread

    def view(self, context: ProjectionContext, change: MessagesUnread, viewer: Viewer) -> Hashable:
        return viewer.registration.capabilities.empty_topic_name

    def events(
        self, context: ProjectionContext, change: MessagesUnread, view: Any
    ) -> Iterable[Event]:
        details = {}
        for message in change.messages:
            mentioned = True if message.mentioned else UNSET
            if message.channel_id is None:
                details[str(message.id)] = UnreadDetails(
                    type="private", user_ids=list(message.others), mentioned=mentioned
                )
            else:
                details[str(message.id)] = UnreadDetails(
                    type="stream",
                    stream_id=message.channel_id,
                    topic=topic_shown(message.topic, empty_topic_name=view),
                    mentioned=mentioned,
                )
        event = flags_event("remove", "read", [message.id for message in change.messages])
        event.message_details = details
        yield event


def _flag_changed(_: ProjectionContext, change: FlagsChanged) -> FlagsEvent:
    (name,) = flag_names(Flag(change.flag), read=False)
    return flags_event("add" if change.added else "remove", name, change.message_ids)


def _read(_: ProjectionContext, change: MessagesRead) -> FlagsEvent:
    ids = () if change.everything else change.message_ids
    return flags_event("add", "read", ids, everything=change.everything)


PROJECTIONS: Final[Projections] = (
    to_owner(FlagsChanged, _flag_changed),
    to_owner(MessagesRead, _read),
    MessagesUnreadProjection(),
)
