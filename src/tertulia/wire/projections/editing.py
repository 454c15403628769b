"""Events of messages that change after they were sent."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType
from pyroaring import BitMap

from tertulia.domain import permissions
from tertulia.model.changes import (
    MessageEdited,
    MessagesDeleted,
    MessagesMoved,
    PreviewsGivenUp,
)
from tertulia.model.messages import Flag, Message
from tertulia.model.stretches import Places, Some, Spans, ids_at, ids_of, places, told
from tertulia.state.organization import State
from tertulia.store.reading import Relation
from tertulia.wire.events import Event, Projection, Scene, Unseen, Viewer
from tertulia.wire.objects.messages import TopicLink, flags_of, topic_links, topic_shown
from tertulia.wire.projections.messages import FlagsEvent, reads_where_it_is


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


def _flags(
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
    """New content, to those who may read the message and may have it."""

    of = MessageEdited

    def audience(self, state: State, change: MessageEdited) -> Collection[int]:
        message = change.message
        if message.channel_id is None:
            return state.directs[message.direct_id].members
        return {*state.subscriptions_of_channel.get(message.channel_id, {}), *change.flags}

    def view(self, scene: Scene, change: MessageEdited, viewer: Viewer) -> Hashable | None:
        state, user, message = scene.state, viewer.user, change.message
        if (
            change.gone
            or not permissions.reads_message(state, user, message, scene.at)
            or not reads_where_it_is(scene, change, viewer)
        ):
            return None
        return _EditView(
            _flags(state, user.id, message, change.flags, change.read_by),
            viewer.registration.capabilities.empty_topic_name,
        )

    def events(self, scene: Scene, change: MessageEdited, view: Any) -> Iterable[Event]:
        message = change.message
        event = UpdateMessageEvent(
            user_id=None if change.rendering_only else scene.entry.actor_id,
            rendering_only=change.rendering_only,
            message_id=message.id,
            message_ids=[message.id],
            flags=list(view.flags),
            edit_timestamp=int(scene.at),
            content=message.content,
            rendered_content=message.rendered,
        )
        if message.channel_id is not None:
            event.stream_id = message.channel_id
            event.stream_name = scene.state.channels[message.channel_id].name
        if not change.rendering_only:
            event.orig_content = change.was_content
            event.orig_rendered_content = change.was_rendered
            event.is_me_message = message.is_me
        yield event


class PreviewsGivenUpProjection(Unseen):
    """What is not shown is nobody's business."""

    of = PreviewsGivenUp


class _MoveView(NamedTuple):
    lost: Some
    """Messages that are out of sight."""
    shown: Some
    """Messages that are seen where they are."""
    flags: tuple[str, ...]
    empty_topic_name: bool
    bulk: bool


class _Moved:
    """A move, as it is looked up for each who hears of it."""

    def __init__(self, change: MessagesMoved) -> None:
        self.change = change
        self.ids = BitMap(change.message_ids)
        self.lost_of = {user_id: some for some, users in change.lost for user_id in users}
        self.read_by = frozenset(change.read_by)
        self._parts: dict[tuple[Some, Places | None, Places], tuple[Some, Some]] = {}

    def parts(self, lost: Some, before: Spans | None, after: Spans) -> tuple[Some, Some]:
        """What is out of sight, and what is seen where it is, of one who lost those then, could
        read the first in the old channel (None: it is the same), and can read the others in the
        new one, now. To whom they are new, nothing is said of where they were."""
        ids = self.change.message_ids
        places_before = None if before is None else places(ids, before)
        key = (lost, places_before, places(ids, after))
        found = self._parts.get(key)
        if found is None:
            gone = ids_of(lost, self.ids)
            shown = ids_at(ids, self.ids, key[2]) - gone
            if places_before is not None:
                known = ids_at(ids, self.ids, places_before)
                gone = (gone | known) - shown
                shown &= known
            found = self._parts[key] = told(gone, self.ids), told(shown, self.ids)
        return found


class MessagesMovedProjection(Projection[MessagesMoved]):
    """A move, to those who may read the messages where they were and where they are; to those who
    cannot read them any more, they are deleted."""

    of = MessagesMoved

    def __init__(self) -> None:
        self._last: _Moved | None = None

    def _moved(self, change: MessagesMoved) -> _Moved:
        if self._last is None or self._last.change is not change:
            self._last = _Moved(change)
        return self._last

    def audience(self, state: State, change: MessagesMoved) -> Collection[int]:
        ever = state.subscriptions_of_channel
        return {
            *ever.get(change.channel_id, {}),
            *ever.get(change.new_channel_id, {}),
            *change.flags,
            *(user_id for _, user_ids in change.lost for user_id in user_ids),
        }

    def view(self, scene: Scene, change: MessagesMoved, viewer: Viewer) -> Hashable | None:
        state, user, moved = scene.state, viewer.user, self._moved(change)
        channel = state.channels[change.new_channel_id]
        # Who read them where they were may have lost sight of where they are since.
        before: Spans | None = None
        if change.changes_channel:
            source = state.channels[change.channel_id]
            before = permissions.readable_spans(state, user, source, scene.at)
        after = permissions.readable_spans(state, user, channel, scene.at)
        lost, shown = moved.parts(moved.lost_of.get(user.id, ()), before, after)
        if not lost and not shown:
            return None
        flags: tuple[str, ...] = ()
        if change.anchor_id in ids_of(shown, moved.ids):
            anchor = Message(
                id=change.anchor_id,
                sender_id=0,
                sent_at=0,
                channel_id=change.new_channel_id,
                mentions_all=change.mentions_all,
            )
            flags = _flags(state, user.id, anchor, change.flags, moved.read_by)
        capabilities = viewer.registration.capabilities
        bulk = bool(lost) and capabilities.bulk_message_deletion
        return _MoveView(lost, shown, flags, capabilities.empty_topic_name, bulk)

    def events(self, scene: Scene, change: MessagesMoved, view: Any) -> Iterable[Event]:
        old_topic = topic_shown(change.topic, empty_topic_name=view.empty_topic_name)
        moved = self._moved(change)
        if view.lost:
            lost = ids_of(view.lost, moved.ids)
            yield from _gone(lost, change.channel_id, old_topic, in_bulk=view.bulk)
        if not view.shown:
            return
        shown = list(ids_of(view.shown, moved.ids))
        event = UpdateMessageEvent(
            user_id=scene.entry.actor_id,
            rendering_only=False,
            # Who cannot read the message that was asked about hears of the others.
            message_id=change.anchor_id if change.anchor_id in shown else shown[0],
            message_ids=shown,
            flags=list(view.flags),
            edit_timestamp=int(scene.at),
            stream_id=change.channel_id,
            stream_name=scene.state.channels[change.channel_id].name,
            propagate_mode=change.propagation.value,
            orig_subject=old_topic,
        )
        if change.changes_channel:
            event.new_stream_id = change.new_channel_id
        if change.changes_topic:
            event.subject = topic_shown(change.new_topic, empty_topic_name=view.empty_topic_name)
            event.topic_links = topic_links(scene.state, change.new_topic)
        yield event


class _DeletedView(NamedTuple):
    bulk: bool
    empty_topic_name: bool


class _HeldView(NamedTuple):
    message_ids: tuple[int, ...]
    """Messages that the viewer had flags on."""


class MessagesDeletedProjection(Projection[MessagesDeleted]):
    """A deletion, to those who may have the messages; and to those who cannot read them any more
    but noted something about them, that this is gone."""

    of = MessagesDeleted

    def audience(self, state: State, change: MessagesDeleted) -> Collection[int]:
        if change.channel_id is None:
            return state.directs[change.direct_id].members
        holders = (user_id for _, user_ids in change.holders for user_id in user_ids)
        return {*state.subscriptions_of_channel.get(change.channel_id, {}), *holders}

    def view(self, scene: Scene, change: MessagesDeleted, viewer: Viewer) -> Hashable | None:
        state, user = scene.state, viewer.user
        one = Message(
            id=change.message_ids[-1],
            sender_id=0,
            sent_at=0,
            channel_id=change.channel_id,
            direct_id=change.direct_id,
        )
        if not permissions.reads_message(state, user, one, scene.at):
            held = next((ids for ids, users in change.holders if user.id in users), ())
            return _HeldView(held) if held else None
        capabilities = viewer.registration.capabilities
        return _DeletedView(capabilities.bulk_message_deletion, capabilities.empty_topic_name)

    def events(self, scene: Scene, change: MessagesDeleted, view: Any) -> Iterable[Event]:
        if isinstance(view, _HeldView):
            yield FlagsEvent(
                op="remove",
                operation="remove",
                flag="starred",
                messages=list(view.message_ids),
                all=False,
            )
            return
        in_bulk, empty_topic_name = view
        topic = topic_shown(change.topic, empty_topic_name=empty_topic_name)
        yield from _gone(change.message_ids, change.channel_id, topic, in_bulk=in_bulk)


def _gone(
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
