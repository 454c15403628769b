"""Events of new messages."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType
from pyroaring import BitMap

from tertulia.domain import channel_access, permissions
from tertulia.domain.accounts import users
from tertulia.model.changes import MessageSent
from tertulia.model.channels import RESOLVED_PREFIX, topic_key
from tertulia.model.messages import Message
from tertulia.model.queues import QueueRecord
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.store.message_details import MessageDetails
from tertulia.wire.api.attachments import WithAttachments
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.flag_objects import flags_on_arrival
from tertulia.wire.api.messages.objects import MessageFormat, MessageObject, message_object
from tertulia.wire.api.projection import (
    Grouping,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
)
from tertulia.wire.api.visibility import reads_after_move, sees_user


def in_narrow(
    context: ProjectionContext, message: Message, viewer: Viewer, flags: Collection[str]
) -> bool:
    """Whether the message is in the queue's narrow, which supports only a few operators."""
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
            named = users.find_by_address(state, reader, operand, context.host)
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
            return message.channel_id is not None and message.topic.startswith(RESOLVED_PREFIX)
        case _:
            return False


class MessageEvent(Event, kw_only=True, tag="message"):
    """A new message."""

    message: MessageObject
    flags: list[str]
    local_message_id: str | UnsetType = UNSET


def message_format(viewer: Viewer) -> MessageFormat:
    registration = viewer.registration
    return MessageFormat(
        apply_markdown=registration.apply_markdown,
        client_gravatar=registration.client_gravatar,
        empty_topic_name=registration.capabilities.empty_topic_name,
    )


class _MessageView(NamedTuple):
    form: MessageFormat
    sees_sender: bool
    sees_address: bool
    flags: tuple[str, ...]
    local_id: str | None


class MessageSentProjection(Projection[MessageSent]):
    """Shown to recipients of the message, and queues that follow all public channels."""

    of = MessageSent
    for_all_public = True

    def audience(self, state: State, change: MessageSent) -> Collection[int]:
        message = change.message
        if change.imported:
            return ()
        if message.channel_id is None:
            return state.directs[message.direct_id].members
        return state.subscriptions.of_channel[message.channel_id]

    def grouping(self, state: State, change: MessageSent) -> Grouping | None:
        """Group subscribers by role if their view depends on nothing else; most are members."""
        message = change.message
        channel_id = message.channel_id
        if channel_id is None or change.gone or change.moved_to is not None:
            return None
        message_id, flags = message.id, change.flags
        read_by = frozenset((message.sender_id, *change.readers))
        # These users may see something else of the sender.
        limited, gainers = state.memberships.limited_guests, state.contacts.gainers
        subscribers = state.subscriptions.of_channel[channel_id]

        def group(user: User, queue: QueueRecord) -> Hashable | None:
            user_id = user.id
            if (
                user_id in read_by
                or user_id in flags
                or user_id in limited
                or user_id in gainers
                or queue.registration.narrow
            ):
                return None
            subscription = subscribers.get(user_id)
            if subscription is None or not subscription.spans:
                return None
            since, until = subscription.spans[-1]
            is_present = until is None and since < message_id
            return permissions.role_of(state, user) if is_present else None

        def members() -> BitMap:
            active = state.active_subscribers
            if active.newest_since(channel_id) >= message_id:
                return BitMap()
            usual = active.as_set(channel_id) & state.users.usual.ids
            return usual - BitMap((*read_by, *flags)) - limited - gainers

        return Grouping(group, members)

    def view(
        self, context: ProjectionContext, change: MessageSent, viewer: Viewer
    ) -> Hashable | None:
        state, message, user = context.state, change.message, viewer.user
        registration = viewer.registration
        if (
            change.gone
            or change.imported
            or not (
                state.received(user.id, message)
                or (registration.all_public_channels and _is_public(context, message, viewer))
            )
            # Users who have left a private channel since can no longer read its messages.
            or not channel_access.reads_message(state, user, message)
            or not reads_after_move(context, message.id, change.moved_to, viewer)
        ):
            return None
        flags = tuple(flags_on_arrival(state, user.id, change))
        if registration.narrow and not in_narrow(context, message, viewer, flags):
            return None
        sender = state.users[message.sender_id]
        is_own = message.sender_id == user.id
        echo = is_own and change.queue_id is not None and change.queue_id == viewer.queue.id
        return _MessageView(
            form=message_format(viewer),
            sees_sender=sees_user(context, user, sender),
            sees_address=permissions.sees_address(state, user, sender),
            flags=flags,
            local_id=change.local_id if echo else None,
        )

    def events(self, context: ProjectionContext, change: MessageSent, view: Any) -> Iterable[Event]:
        yield MessageEvent(
            message=message_object(
                context.state,
                change.message,
                context.host,
                view.form,
                sees_sender=view.sees_sender,
                sees_address=view.sees_address,
                details=MessageDetails(submessages=(change.widget,) if change.widget else ()),
            ),
            flags=list(view.flags),
            local_message_id=UNSET if view.local_id is None else view.local_id,
        )


def _is_public(context: ProjectionContext, message: Message, viewer: Viewer) -> bool:
    if message.channel_id is None:
        return False
    channel = context.state.channels[message.channel_id]
    return not channel.is_private and channel_access.reads_channel(
        context.state, viewer.user, channel
    )


PROJECTIONS: Final[Projections] = (
    WithAttachments(MessageSentProjection(), lambda change: change.attachment_ids),
)
