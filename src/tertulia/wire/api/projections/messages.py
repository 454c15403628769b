"""Events of messages and of what readers do with them."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import users
from tertulia.model.changes import (
    FlagsChanged,
    MessageEdited,
    MessageSent,
    MessagesRead,
    MessagesUnread,
)
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Message
from tertulia.model.queues import QueueRecord
from tertulia.model.users import User
from tertulia.state.organization import State
from tertulia.store.message_details import MessageDetails
from tertulia.wire.api.events import Event, Projection, ProjectionContext, Viewer
from tertulia.wire.api.objects.messages import (
    MessageObject,
    flag_names,
    flags_on_arrival,
    message_object,
    topic_shown,
)
from tertulia.wire.api.projections.visibility import sees_user


class MessageEvent(Event, kw_only=True, tag="message"):
    """A message came in."""

    message: MessageObject
    flags: list[str]
    local_message_id: str | UnsetType = UNSET


class _MessageView(NamedTuple):
    apply_markdown: bool
    client_gravatar: bool
    sees_sender: bool
    sees_address: bool
    empty_topic_name: bool
    flags: tuple[str, ...]
    local_id: str | None


class MessageSentProjection(Projection[MessageSent]):
    """A message, to those who received it and to queues that follow all public channels."""

    of = MessageSent
    for_all_public = True

    def audience(self, state: State, change: MessageSent) -> Collection[int]:
        message = change.message
        if message.channel_id is None:
            return state.directs[message.direct_id].members
        return state.subscriptions_of_channel.get(message.channel_id, {})

    def view_group(
        self, state: State, change: MessageSent, user: User, queue: QueueRecord
    ) -> Hashable | None:
        """Subscribers whom it concerns no more than others: those of a role."""
        message = change.message
        if (
            message.channel_id is None
            or user.id == message.sender_id
            or user.id in change.flags
            or user.id in change.readers
            # Each knows of others than the next.
            or user.id in state.limited_guests
            or user.id in state.acquaintances.gainers
            or queue.registration.narrow
            or change.gone
            or change.moved_to is not None
        ):
            return None
        subscription = state.subscription(user.id, message.channel_id)
        if subscription is None or not subscription.is_active:
            return None
        return permissions.role_of(state, user) if subscription.since < message.id else None

    def view(
        self, context: ProjectionContext, change: MessageSent, viewer: Viewer
    ) -> Hashable | None:
        state, message, user = context.state, change.message, viewer.user
        registration = viewer.registration
        if (
            change.gone
            or not (
                state.received(user.id, message)
                or (registration.all_public_channels and _is_public(context, message, viewer))
            )
            # Who has left a private channel since cannot read what they received in it any more.
            or not permissions.reads_message(state, user, message, context.at)
            or not reads_where_it_is(context, change, viewer)
        ):
            return None
        flags = tuple(flags_on_arrival(state, user.id, change))
        if registration.narrow and not in_narrow(context, message, viewer, flags):
            return None
        sender = state.users[message.sender_id]
        is_own = message.sender_id == user.id
        echo = is_own and change.queue_id is not None and change.queue_id == viewer.queue.id
        return _MessageView(
            apply_markdown=registration.apply_markdown,
            client_gravatar=registration.client_gravatar,
            sees_sender=sees_user(context, user, sender),
            sees_address=permissions.sees_address(state, user, sender),
            empty_topic_name=registration.capabilities.empty_topic_name,
            flags=flags,
            local_id=change.local_id if echo else None,
        )

    def events(self, context: ProjectionContext, change: MessageSent, view: Any) -> Iterable[Event]:
        yield MessageEvent(
            message=message_object(
                context.state,
                change.message,
                context.host,
                sees_sender=view.sees_sender,
                sees_address=view.sees_address,
                apply_markdown=view.apply_markdown,
                client_gravatar=view.client_gravatar,
                empty_topic_name=view.empty_topic_name,
                attached=MessageDetails(submessages=(change.widget,) if change.widget else ()),
            ),
            flags=list(view.flags),
            local_message_id=UNSET if view.local_id is None else view.local_id,
        )


def reads_where_it_is(
    context: ProjectionContext, change: MessageSent | MessageEdited, viewer: Viewer
) -> bool:
    """Whether the viewer may read a message that has been moved to another channel since."""
    if change.moved_to is None:
        return True
    there = msgspec.structs.replace(change.message, channel_id=change.moved_to)
    return permissions.reads_message(context.state, viewer.user, there, context.at)


def _is_public(context: ProjectionContext, message: Message, viewer: Viewer) -> bool:
    if message.channel_id is None:
        return False
    channel = context.state.channels[message.channel_id]
    return not channel.is_private and permissions.reads_channel(
        context.state, viewer.user, channel, context.at
    )


def in_narrow(
    context: ProjectionContext, message: Message, viewer: Viewer, flags: Collection[str]
) -> bool:
    """Whether the message is in the queue's narrow, which knows only a few operators."""
    return all(
        _holds(context, message, viewer.user, operator, operand, flags)
        for operator, operand in viewer.registration.narrow
    )


def _holds(
    context: ProjectionContext,
    message: Message,
    reader: User,
    operator: str,
    operand: str,
    flags: Collection[str],
) -> bool:
    state = context.state
    match operator, operand:
        case "channel", _:
            channel = state.channels.get(message.channel_id)
            return channel is not None and (
                channel.name.casefold() == operand.casefold() or str(channel.id) == operand
            )
        case "topic", _:
            return message.channel_id is not None and topic_key(message.topic) == topic_key(operand)
        case "sender", _:
            named = users.account_with(state, reader, operand, context.host, context.at)
            if named is None and str(message.sender_id) == operand:
                return sees_user(context, reader, state.users[message.sender_id])
            return named is not None and named.id == message.sender_id
        case "is", "dm":
            return message.channel_id is None
        case "is", "unread":
            return "read" not in flags
        case "is", "starred":
            return "starred" in flags
        case "is", "mentioned":
            return "mentioned" in flags or "wildcard_mentioned" in flags
        case "is", "alerted":
            return "has_alert_word" in flags
        case "is", "resolved":
            return message.channel_id is not None and message.topic.startswith("✔ ")
        case _:
            return False


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


class FlagsChangedProjection(Projection[FlagsChanged]):
    """A flag, to the one whose it is."""

    of = FlagsChanged

    def audience(self, state: State, change: FlagsChanged) -> Collection[int]:
        return (change.user_id,)

    def view(self, context: ProjectionContext, change: FlagsChanged, viewer: Viewer) -> Hashable:
        return ()

    def events(
        self, context: ProjectionContext, change: FlagsChanged, view: Any
    ) -> Iterable[Event]:
        op = "add" if change.added else "remove"
        (name,) = flag_names(Flag(change.flag), read=False)
        yield FlagsEvent(
            op=op, operation=op, flag=name, messages=list(change.message_ids), all=False
        )


class MessagesReadProjection(Projection[MessagesRead]):
    """What one has read, to one's other clients."""

    of = MessagesRead

    def audience(self, state: State, change: MessagesRead) -> Collection[int]:
        return (change.user_id,)

    def view(self, context: ProjectionContext, change: MessagesRead, viewer: Viewer) -> Hashable:
        return ()

    def events(
        self, context: ProjectionContext, change: MessagesRead, view: Any
    ) -> Iterable[Event]:
        yield FlagsEvent(
            op="add",
            operation="add",
            flag="read",
            messages=[] if change.everything else list(change.message_ids),
            all=change.everything,
        )


class MessagesUnreadProjection(Projection[MessagesUnread]):
    """What one made unread again, to one's other clients."""

    of = MessagesUnread

    def audience(self, state: State, change: MessagesUnread) -> Collection[int]:
        return (change.user_id,)

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
        yield FlagsEvent(
            op="remove",
            operation="remove",
            flag="read",
            messages=[message.id for message in change.messages],
            all=False,
            message_details=details,
        )
