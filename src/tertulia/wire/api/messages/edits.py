"""Editing messages, and their edit history."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import channel_access
from tertulia.domain.accounts.access_keys import KeyCapability
from tertulia.domain.channels.topics import toggles_resolution
from tertulia.domain.messages.moving import Move
from tertulia.model.changes import MessageEdited, PreviewsGivenUp
from tertulia.model.errors import NoSuchMessage, Refused
from tertulia.model.messages import Flag, Message, MessageEdit, Propagation
from tertulia.service.messages import editing as service
from tertulia.service.messages.reading import readable_message
from tertulia.state.state import State
from tertulia.store import editing
from tertulia.store.message_marks import Relation
from tertulia.wire.api.attachments import AttachmentObject, WithAttachments, attachment_object
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flag_objects import flags_of
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, projected, unseen
from tertulia.wire.api.topics import TopicLink, display_topic
from tertulia.wire.api.visibility import reads_after_move
from tertulia.wire.http.parameters import Alias, Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class PastEdit(Struct, kw_only=True):
    """One edit of a message, with the values before it."""

    timestamp: int
    user_id: int | None
    prev_content: str | UnsetType = UNSET
    prev_rendered_content: str | UnsetType = UNSET
    prev_topic: str | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    prev_stream: int | UnsetType = UNSET
    stream: int | UnsetType = UNSET


def edited_at(edits: Sequence[MessageEdit]) -> int | UnsetType:
    """Return when the content was last edited. `edits` are newest first, here and below."""
    return next((edit.at for edit in edits if edit.changed_content), UNSET)


def moved_at(edits: Sequence[MessageEdit]) -> int | UnsetType:
    """Return when the message was last moved."""
    return next((edit.at for edit in edits if _is_move(edit)), UNSET)


def past_edits(
    state: State, edits: Sequence[MessageEdit], *, empty_topic_name: bool
) -> list[PastEdit]:
    """Return the edits that the organization's policy shows."""
    policy = state.realm.message_edit_history_visibility_policy
    return [
        _past(edit, empty_topic_name=empty_topic_name)
        for edit in edits
        if policy == "all" or (policy == "moves" and not edit.changed_content)
    ]


def _is_move(edit: MessageEdit) -> bool:
    """Whether the message was moved. Resolving a topic doesn't count as a move."""
    if edit.was_channel_id is not None:
        return True
    if edit.was_topic is None or edit.topic is None:
        return False
    return not toggles_resolution(edit.was_topic, edit.topic)


def _past(edit: MessageEdit, *, empty_topic_name: bool) -> PastEdit:
    past = PastEdit(timestamp=edit.at, user_id=edit.user_id)
    if edit.was_content is not None:
        past.prev_content = edit.was_content
        past.prev_rendered_content = edit.was_rendered or ""
    if edit.was_topic is not None and edit.topic is not None:
        past.prev_topic = display_topic(edit.was_topic, empty_topic_name=empty_topic_name)
        past.topic = display_topic(edit.topic, empty_topic_name=empty_topic_name)
    if edit.was_channel_id is not None and edit.channel_id is not None:
        past.prev_stream, past.stream = edit.was_channel_id, edit.channel_id
    return past


class UpdateMessageEvent(Event, kw_only=True, tag="update_message"):
    """A message was edited, or messages were moved.

    Fields of the content are present if the content changed. Fields of the move (`propagate_mode`,
    `orig_subject`, and the fields after it) are present if the channel or topic changed.
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


def _audience(state: State, change: MessageEdited) -> Collection[int]:
    message = change.message
    if message.channel_id is None:
        return state.directs[message.direct_id].members
    return {*state.subscriptions.of_channel[message.channel_id], *change.flags}


def _view(context: ProjectionContext, change: MessageEdited, viewer: Viewer) -> Hashable | None:
    state, user, message = context.state, viewer.user, change.message
    if (
        change.gone
        or not channel_access.reads_message(state, user, message)
        or not reads_after_move(context, message.id, change.moved_to, viewer)
    ):
        return None
    return flags_by_name(state, user.id, message, change.flags, change.read_by)


def _edited(context: ProjectionContext, change: MessageEdited, view: Any) -> Iterable[Event]:
    message = change.message
    event = UpdateMessageEvent(
        user_id=None if change.rendering_only else context.entry.actor_id,
        rendering_only=change.rendering_only,
        message_id=message.id,
        message_ids=[message.id],
        flags=list(view),
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


class UpdateMessageResponse(ApiResponse, kw_only=True):
    """`detached_uploads` are your files that no message links anymore."""

    detached_uploads: list[AttachmentObject]


async def update_message(
    call: Call,
    message_id: IntPath,
    content: Annotated[str | None, Doc("The new Markdown content.")] = None,
    prev_content_sha256: Annotated[
        str | None,
        Doc(
            "The SHA-256 hash of the content you edited, in hexadecimal. The request fails if the"
            " message has changed since."
        ),
    ] = None,
    topic: Annotated[str | None, Alias("subject"), Doc("The topic to move to.")] = None,
    stream_id: Annotated[Int | None, Doc("The channel to move to.")] = None,
    propagate_mode: Annotated[
        Literal["change_one", "change_later", "change_all"],
        Doc("Whether to move only this message, also later ones, or the whole topic."),
    ] = "change_one",
    send_notification_to_old_thread: bool = False,
    send_notification_to_new_thread: bool = True,
) -> UpdateMessageResponse:
    """Edit a message, or move it and other messages of its topic. An access key needs full access
    to move."""
    moves = topic is not None or stream_id is not None
    if moves:
        call.require_key(KeyCapability.FULL)
    if content is None and not moves:
        raise Refused("Nothing to change: the request has no new value.")
    if content is not None and stream_id is not None:
        raise Refused("You can't edit a message's content while moving it to another channel.")
    if not moves and propagate_mode != "change_one":
        raise Refused("'propagate_mode' can be used only when moving messages.")
    move = None
    if moves:
        move = Move(
            topic=topic,
            channel_id=stream_id,
            propagation=Propagation(propagate_mode),
            tell_old=send_notification_to_old_thread,
            tell_new=send_notification_to_new_thread,
        )
    detached: tuple[int, ...] = ()
    if content is not None:
        detached = await service.edit_message(
            call,
            message_id,
            content,
            expected_sha256=prev_content_sha256,
            move=move,
        )
    elif move is not None:
        await service.move_messages(call, message_id, move)
    return UpdateMessageResponse(detached_uploads=_unused(call, detached))


def _unused(call: Call, attachment_ids: Iterable[int]) -> list[AttachmentObject]:
    state = call.state
    files = (state.attachments.get(attachment_id) for attachment_id in attachment_ids)
    objects = [
        attachment_object(state, file) for file in files if file and file.user_id == call.user_id
    ]
    return [attachment_object for attachment_object in objects if not attachment_object.message_ids]


class MessageVersion(Struct, kw_only=True):
    """A version of a message. Fields with `prev_` are present if they changed from the version
    before."""

    topic: str
    prev_topic: str | UnsetType = UNSET
    stream: int | UnsetType = UNSET
    prev_stream: int | UnsetType = UNSET
    content: str
    rendered_content: str
    prev_content: str | UnsetType = UNSET
    prev_rendered_content: str | UnsetType = UNSET
    user_id: int | None
    timestamp: int


class MessageHistoryResponse(ApiResponse, kw_only=True):
    """Versions of a message, oldest first. If there are older versions, `next_before` is present:
    send it as `before`."""

    message_history: list[MessageVersion]
    next_before: int | UnsetType = UNSET


async def get_history(
    call: Call,
    message_id: IntPath,
    allow_empty_topic_name: bool = False,
    before: Annotated[
        Int | None, Doc("`next_before` from a response, to get older versions.")
    ] = None,
) -> MessageHistoryResponse:
    """Get the versions of a message before it was edited or moved. If the organization shows only
    moves, each version has the current content."""
    message = await readable_message(call.node, call.user, message_id)
    if message is None:
        raise NoSuchMessage
    policy = call.state.realm.message_edit_history_visibility_policy
    if policy == "none":
        raise Refused("This organization doesn't show the edit history of messages.")
    page = await call.node.store.read(editing.history, message.id, before)
    edits = channel_access.visible_edits(call.state, call.user, page.edits)
    versions = _versions(message, edits, empty_topic_name=allow_empty_topic_name)
    is_last = page.end >= len(edits)
    versions = versions[page.begin : None if is_last else page.end][::-1]
    if policy == "moves":
        versions = [_without_edit(version, message) for version in versions if _has_moved(version)]
    return MessageHistoryResponse(
        message_history=versions, next_before=UNSET if is_last else edits[page.end - 1].seq
    )


def _has_moved(version: MessageVersion) -> bool:
    """Whether anything other than the content changed."""
    return version.prev_content is UNSET or not (
        version.prev_topic is UNSET and version.prev_stream is UNSET
    )


def _without_edit(version: MessageVersion, message: Message) -> MessageVersion:
    """Return the version with the message's current content instead of its own."""
    return msgspec.structs.replace(
        version,
        content=message.content,
        rendered_content=message.rendered,
        prev_content=UNSET,
        prev_rendered_content=UNSET,
    )


def _versions(
    message: Message, edits: Sequence[MessageEdit], *, empty_topic_name: bool
) -> list[MessageVersion]:
    """Return the versions, newest first. Only those of the page have their contents."""

    def display(topic: str) -> str:
        return display_topic(topic, empty_topic_name=empty_topic_name)

    content, rendered, topic = message.content, message.rendered, message.topic
    versions: list[MessageVersion] = []
    for edit in edits:
        version = MessageVersion(
            topic=display(topic),
            content=content,
            rendered_content=rendered,
            user_id=edit.user_id,
            timestamp=edit.at,
        )
        if edit.was_topic is not None:
            version.prev_topic, topic = display(edit.was_topic), edit.was_topic
        if edit.was_channel_id is not None and edit.channel_id is not None:
            version.prev_stream, version.stream = edit.was_channel_id, edit.channel_id
        if edit.was_content is not None and edit.was_rendered is not None:
            version.prev_content = content = edit.was_content
            version.prev_rendered_content = rendered = edit.was_rendered
        versions.append(version)
    versions.append(
        MessageVersion(
            topic=display(topic),
            content=content,
            rendered_content=rendered,
            user_id=message.sender_id,
            timestamp=message.sent_at,
        )
    )
    return versions


PROJECTIONS: Final[Projections] = (
    WithAttachments(
        projected(MessageEdited, _view, _edited, audience=_audience),
        lambda change: (*change.attached, *change.detached),
    ),
    unseen(PreviewsGivenUp),
)
