"""Events of messages with new content."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.domain import permissions
from tertulia.model.changes import MessageEdited, PreviewsGivenUp
from tertulia.model.messages import Flag, Message
from tertulia.state.organization import State
from tertulia.store.queries import Relation
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.message_flags import flags_of
from tertulia.wire.api.objects.topics import TopicLink
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen
from tertulia.wire.api.projections.attachments import WithAttachments
from tertulia.wire.api.projections.messages import reads_where_it_is


class UpdateMessageEvent(Event, kw_only=True, tag="update_message"):
    """A message says something else, or messages are somewhere else.

    The fields of the content are there where that changed; those of the move (`propagate_mode`,
    `orig_subject` and what follows) where the channel or the topic did.
    """

    user_id: int | None
    rendering_only: bool
    message_id: int
    message_ids: list[int]
    flags: list[str]
    edit_timestamp: int
    stream_id: int | UnsetType = UNSET
    stream_name: str | UnsetType = UNSET
    orig_content: str | UnsetType = UNSET
    orig_rendered_content: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    rendered_content: str | UnsetType = UNSET
    is_me_message: bool | UnsetType = UNSET
    propagate_mode: str | UnsetType = UNSET
    orig_subject: str | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    topic_links: list[TopicLink] | UnsetType = UNSET
    new_stream_id: int | UnsetType = UNSET


def flags_by_name(
    state: State,
    user_id: int,
    message: Message,
    flags: dict[int, Flag],
    read_by: Collection[int],
) -> tuple[str, ...]:
    relation = Relation(flags.get(user_id, Flag(0)), user_id in read_by)
    return tuple(flags_of(state, user_id, message, relation))


class _EditView(NamedTuple):
    flags: tuple[str, ...]
    empty_topic_name: bool


class MessageEditedProjection(Projection[MessageEdited]):
    """New content, to users who may read the message and whose client may have it."""

    of = MessageEdited

    def audience(self, state: State, change: MessageEdited) -> Collection[int]:
        message = change.message
        if message.channel_id is None:
            return state.directs[message.direct_id].members
        return {*state.subscriptions.of_channel[message.channel_id], *change.flags}

    def view(
        self, context: ProjectionContext, change: MessageEdited, viewer: Viewer
    ) -> Hashable | None:
        state, user, message = context.state, viewer.user, change.message
        if (
            change.gone
            or not permissions.reads_message(state, user, message)
            or not reads_where_it_is(context, message.id, change.moved_to, viewer)
        ):
            return None
        return _EditView(
            flags_by_name(state, user.id, message, change.flags, change.read_by),
            viewer.registration.capabilities.empty_topic_name,
        )

    def events(
        self, context: ProjectionContext, change: MessageEdited, view: Any
    ) -> Iterable[Event]:
        message = change.message
        event = UpdateMessageEvent(
            user_id=None if change.rendering_only else context.entry.actor_id,
            rendering_only=change.rendering_only,
            message_id=message.id,
            message_ids=[message.id],
            flags=list(view.flags),
            edit_timestamp=int(context.at),
            content=message.content,
            rendered_content=message.rendered,
        )
        if message.channel_id is not None:
            event.stream_id = message.channel_id
            event.stream_name = context.state.channels[message.channel_id].name
        if not change.rendering_only:
            event.orig_content = change.was_content
            event.orig_rendered_content = change.was_rendered
            event.is_me_message = message.is_me
        yield event


PROJECTIONS: Final[Projections] = (
    WithAttachments(MessageEditedProjection(), lambda change: (*change.attached, *change.detached)),
    unseen(PreviewsGivenUp),  # The message is as it was.
)
