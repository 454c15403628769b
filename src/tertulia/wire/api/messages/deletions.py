"""Events of messages that were deleted, or went out of sight."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.model.changes import MessagesDeleted
from tertulia.model.ranges import EVERYTHING, Places, places
from tertulia.state.state import State
from tertulia.wire.api.attachments import WithAttachments
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flags import flags_event
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.topics import topic_shown
from tertulia.wire.api.visibility import read_then


class DeleteMessagesEvent(Event, kw_only=True, tag="delete_message"):
    """Messages of one conversation are gone, or out of sight."""

    message_ids: list[int]
    message_type: str
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


class DeleteMessageEvent(Event, kw_only=True, tag="delete_message"):
    """One message is gone, or out of sight: for clients that take them singly."""

    message_id: int
    message_type: str
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


def messages_gone(
    message_ids: Iterable[int], channel_id: int | None, topic: str, *, in_bulk: bool
) -> Iterable[Event]:
    where: dict[str, Any] = {"message_type": "private"}
    if channel_id is not None:
        where = {"message_type": "stream", "stream_id": channel_id, "topic": topic}
    if in_bulk:
        yield DeleteMessagesEvent(message_ids=list(message_ids), **where)
    else:
        for message_id in message_ids:
            yield DeleteMessageEvent(message_id=message_id, **where)


class _DeletedView(NamedTuple):
    seen: Places
    """Where the messages are that the viewer could read, among those of the deletion."""
    held: tuple[int, ...]
    """Of the others, those that the viewer had flags on."""
    bulk: bool
    empty_topic_name: bool


class MessagesDeletedProjection(Projection[MessagesDeleted]):
    """A deletion, to users who may read the messages, and could then; to users who cannot any more
    but had flags on them, that these are gone."""

    of = MessagesDeleted

    def audience(self, state: State, change: MessagesDeleted) -> Collection[int]:
        if change.channel_id is None:
            return state.directs[change.direct_id].members
        subscribed = state.subscriptions.of_channel[change.channel_id]
        if not change.holders:
            return subscribed
        return {*subscribed, *(one for _, user_ids in change.holders for one in user_ids)}

    def view(
        self, context: ProjectionContext, change: MessagesDeleted, viewer: Viewer
    ) -> Hashable | None:
        ids, spans = change.message_ids, EVERYTHING
        if change.channel_id is not None:
            # Who is in a direct conversation always was.
            spans = read_then(context, viewer.user, context.state.channels[change.channel_id])
        seen = places(ids, spans)
        held = next((ids for ids, users in change.holders if viewer.user.id in users), ())
        if held:
            told = {one for begin, end in seen for one in ids[begin:end]}
            held = tuple(one for one in held if one not in told)
        if not seen and not held:
            return None
        capabilities = viewer.registration.capabilities
        return _DeletedView(
            seen, held, capabilities.bulk_message_deletion, capabilities.empty_topic_name
        )

    def events(
        self, context: ProjectionContext, change: MessagesDeleted, view: Any
    ) -> Iterable[Event]:
        seen, held, in_bulk, empty_topic_name = view
        if held:
            yield flags_event("remove", "starred", held)
        topic = topic_shown(change.topic, empty_topic_name=empty_topic_name)
        told = [one for begin, end in seen for one in change.message_ids[begin:end]]
        if told:
            yield from messages_gone(told, change.channel_id, topic, in_bulk=in_bulk)


PROJECTIONS: Final[Projections] = (
    WithAttachments(MessagesDeletedProjection(), lambda change: change.detached),
)
