"""Events of messages that were deleted, or went out of sight."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.domain import permissions
from tertulia.model.changes import MessagesDeleted
from tertulia.model.messages import Message
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.topics import topic_shown
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer
from tertulia.wire.api.projections.attachments import WithAttachments
from tertulia.wire.api.projections.message_flags import flags_event


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
    bulk: bool
    empty_topic_name: bool


class _HeldView(NamedTuple):
    message_ids: tuple[int, ...]
    """Messages that the viewer had flags on."""


class MessagesDeletedProjection(Projection[MessagesDeleted]):
    """A deletion, to users who may read the messages; to users who cannot any more but had flags on
    them, that these are gone."""

    of = MessagesDeleted

    def audience(self, state: State, change: MessagesDeleted) -> Collection[int]:
        if change.channel_id is None:
            return state.directs[change.direct_id].members
        holders = (user_id for _, user_ids in change.holders for user_id in user_ids)
        return {*state.subscriptions.of_channel[change.channel_id], *holders}

    def view(
        self, context: ProjectionContext, change: MessagesDeleted, viewer: Viewer
    ) -> Hashable | None:
        state, user = context.state, viewer.user
        one = Message(
            id=change.message_ids[-1],
            sender_id=0,
            sent_at=0,
            channel_id=change.channel_id,
            direct_id=change.direct_id,
        )
        if not permissions.reads_message(state, user, one):
            held = next((ids for ids, users in change.holders if user.id in users), ())
            return _HeldView(held) if held else None
        capabilities = viewer.registration.capabilities
        return _DeletedView(capabilities.bulk_message_deletion, capabilities.empty_topic_name)

    def events(
        self, context: ProjectionContext, change: MessagesDeleted, view: Any
    ) -> Iterable[Event]:
        if isinstance(view, _HeldView):
            yield flags_event("remove", "starred", view.message_ids)
            return
        in_bulk, empty_topic_name = view
        topic = topic_shown(change.topic, empty_topic_name=empty_topic_name)
        yield from messages_gone(change.message_ids, change.channel_id, topic, in_bulk=in_bulk)


PROJECTIONS: Final[Projections] = (
    WithAttachments(MessagesDeletedProjection(), lambda change: change.detached),
)
