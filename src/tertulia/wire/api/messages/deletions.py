"""Deleting messages, and events of messages that were deleted or that a user lost access to."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.domain.accounts.access_keys import KeyCapability
from tertulia.model.changes import MessagesDeleted
from tertulia.model.errors import NoSuchMessage
from tertulia.model.ranges import EVERYTHING, Places, places
from tertulia.service.messages import deleting
from tertulia.service.messages.reading import readable_message
from tertulia.state.state import State
from tertulia.wire.api.attachments import WithAttachments
from tertulia.wire.api.channels.events import first_message_events, first_messages_known
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flags import flags_event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, projected
from tertulia.wire.api.topics import display_topic
from tertulia.wire.api.visibility import readable_at_entry
from tertulia.wire.http.parameters import IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class DeleteMessagesEvent(Event, kw_only=True, tag="delete_message"):
    """Messages of one conversation were deleted, or you lost access to them."""

    message_ids: list[int]
    message_type: str
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


class DeleteMessageEvent(Event, kw_only=True, tag="delete_message"):
    """A message was deleted, or you lost access to it. Sent to clients without bulk deletion."""

    message_id: int
    message_type: str
    stream_id: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET


def deletion_events(
    message_ids: Iterable[int], channel_id: int | None, topic: str, *, in_bulk: bool
) -> Iterable[Event]:
    conversation: dict[str, Any] = {"message_type": "private"}
    if channel_id is not None:
        conversation = {"message_type": "stream", "stream_id": channel_id, "topic": topic}
    if in_bulk:
        yield DeleteMessagesEvent(message_ids=list(message_ids), **conversation)
    else:
        for message_id in message_ids:
            yield DeleteMessageEvent(message_id=message_id, **conversation)


class _DeletedView(NamedTuple):
    seen: Places
    """The index ranges of the deleted messages that the viewer could read."""
    flagged: tuple[int, ...]
    """Other deleted messages that the viewer had flags on."""
    bulk: bool
    empty_topic_name: bool
    firsts: tuple[int, ...]
    """The channel, if the viewer knows it and its first message changed."""


def _audience(state: State, change: MessagesDeleted) -> Collection[int]:
    if change.channel_id is None:
        return state.directs[change.direct_id].members
    subscribed = state.subscriptions.of_channel[change.channel_id]
    if not change.holders:
        return subscribed
    return {*subscribed, *(user_id for _, user_ids in change.holders for user_id in user_ids)}


def _view(context: ProjectionContext, change: MessagesDeleted, viewer: Viewer) -> Hashable | None:
    ids, spans = change.message_ids, EVERYTHING
    if change.channel_id is not None:
        # Direct conversations never change their participants.
        spans = readable_at_entry(context, viewer.user, context.state.channels[change.channel_id])
    seen = places(ids, spans)
    flagged = next((ids for ids, users in change.holders if viewer.user.id in users), ())
    if flagged:
        readable = {message_id for begin, end in seen for message_id in ids[begin:end]}
        flagged = tuple(message_id for message_id in flagged if message_id not in readable)
    firsts = first_messages_known(context, change.first_message_ids, viewer)
    if not seen and not flagged and not firsts:
        return None
    capabilities = viewer.registration.capabilities
    return _DeletedView(
        seen, flagged, capabilities.bulk_message_deletion, capabilities.empty_topic_name, firsts
    )


def _deleted(context: ProjectionContext, change: MessagesDeleted, view: Any) -> Iterable[Event]:
    if view.flagged:
        yield flags_event("remove", "starred", view.flagged)
    topic = display_topic(change.topic, empty_topic_name=view.empty_topic_name)
    ids = [message_id for begin, end in view.seen for message_id in change.message_ids[begin:end]]
    if ids:
        yield from deletion_events(ids, change.channel_id, topic, in_bulk=view.bulk)
    yield from first_message_events(context.state, change.first_message_ids, view.firsts)


async def delete_message(call: Call, message_id: IntPath) -> None:
    """Permanently delete a message. An access key needs full access for other people's messages."""
    if call.key_id is not None:
        message = await readable_message(call.node, call.user, message_id)
        if message is None:
            raise NoSuchMessage
        if message.sender_id != call.user.id:
            call.require_key(KeyCapability.FULL)
    await deleting.delete_message(call, message_id)


class DeleteTopicResponse(ApiResponse, kw_only=True):
    """Whether all messages were deleted. If false, send the request again."""

    complete: bool


async def delete_topic(call: Call, stream_id: IntPath, topic_name: str) -> DeleteTopicResponse:
    """Permanently delete all messages in a topic."""
    complete = await deleting.delete_topic(call, stream_id, topic_name)
    return DeleteTopicResponse(complete=complete)


PROJECTIONS: Final[Projections] = (
    WithAttachments(
        projected(MessagesDeleted, _view, _deleted, audience=_audience),
        lambda change: change.detached,
    ),
)
