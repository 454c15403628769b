"""Deleting messages: for people, with an account, and at the end of their retention period."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.channels import topics
from tertulia.domain.channels.topics import Flags, TopicExcerpt
from tertulia.domain.messages.editing import require_readable
from tertulia.model.changes import MessagesDeleted
from tertulia.model.channels import topic_key
from tertulia.model.errors import Conflict, NotPermitted, Refused
from tertulia.model.messages import Message
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

DAY: Final = 86400
BATCH = 300
"""The most messages that one command deletes, so that it doesn't delay other commands."""
_OF_ENTRY: Final = 100
"""Messages per entry. Some clients get an event for each message, and an entry has IDs for 128
events."""


class MessagesToDelete(Struct, frozen=True, kw_only=True):
    """Messages of one conversation to delete, as of an entry of the log."""

    seq: int
    messages: Sequence[Message]
    excerpt: TopicExcerpt
    flags: Flags = {}
    """Sparse flags of all users on them."""
    direct_last_id: int = 0
    """The newest remaining message of their direct conversation."""


def delete(context: CommandContext, doomed: MessagesToDelete) -> Decision[None]:
    """Delete the messages. Raise Refused without permission; Conflict."""
    _require_unchanged(context.state, doomed)
    for message in doomed.messages:
        require_readable(context, message)
        _require_right(context, message)
    return Decision(None, deletion_changes(context.state, doomed))


class DeletionScope(Struct, frozen=True, kw_only=True):
    """The kinds of conversations to delete messages from."""

    open: bool = False
    closed: bool = False
    """Whether to include all channels that aren't public."""
    direct: bool = False

    def __bool__(self) -> bool:
        return self.open or self.closed or self.direct

    def have(self, state: State, channel_id: int | None) -> bool:
        """Whether the channel (None: direct conversations) is included."""
        if channel_id is None:
            return self.direct
        return self.closed if state.channels[channel_id].is_private else self.open


def delete_written(
    context: CommandContext, doomed: MessagesToDelete, scope: DeletionScope
) -> Decision[None]:
    """Delete messages with their author's account, for administrators, including messages that the
    administrator can't read. Messages that were moved out of the scope stay. Raise Conflict."""
    state = context.state
    permissions.require_administrator(state, context.actor)
    _require_unchanged(state, doomed)
    if not scope.have(state, doomed.messages[0].channel_id):
        return Decision(None)
    return Decision(None, deletion_changes(state, doomed))


def expire(context: CommandContext, doomed: MessagesToDelete, before: int) -> Decision[bool]:
    """Delete messages at the end of their retention period, as the server. Return whether they were
    deleted.

    `before` is the latest time, in UNIX seconds, at which the newest of them may have been sent. If
    the retention period was extended in the meantime, they stay. Raise Conflict.
    """
    _require_unchanged(context.state, doomed)
    limit = kept_since(context.state, doomed.messages[0].channel_id, context.now)
    if limit is None or before > limit:
        return Decision(False)
    return Decision(True, deletion_changes(context.state, doomed))


def kept_since(state: State, channel_id: int | None, now: float) -> int | None:
    """Return the time in UNIX seconds from which messages of the channel (None: direct messages)
    are kept; None if all are."""
    days = state.realm.message_retention_days
    channel = state.channels.get(channel_id)
    if channel is not None and channel.retention_days is not None:
        days = channel.retention_days
    return None if days < 0 else int(now) - days * DAY


def _require_unchanged(state: State, doomed: MessagesToDelete) -> None:
    messages = doomed.messages
    # The channel's next first message may have been deleted or moved, too.
    things = (
        *(m.id for m in messages),
        *{m.conversation for m in messages},
        doomed.excerpt.first_elsewhere,
    )
    if state.recent_writes.since(doomed.seq, things):
        raise Conflict


def deletion_changes(state: State, doomed: MessagesToDelete) -> tuple[MessagesDeleted, ...]:
    """Return the changes that delete the messages, newest first."""
    begins = range(0, len(doomed.messages), _OF_ENTRY)
    return tuple(_entry_change(state, doomed, begin) for begin in reversed(begins))


def _entry_change(state: State, doomed: MessagesToDelete, begin: int) -> MessagesDeleted:
    """Return the change that deletes one entry's messages, beginning at index `begin`. Later ones
    are already deleted."""
    message = doomed.messages[0]
    every = [message.id for message in doomed.messages]
    left, ids = every[:begin], tuple(every[begin : begin + _OF_ENTRY])
    part = frozenset(ids)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for user_id, flags in sorted(doomed.flags.items()):
        alike[tuple(sorted(flag for flag in flags if flag in part))].append(user_id)
    holders = tuple((held, tuple(users)) for held, users in alike.items() if held)
    if message.channel_id is None:
        return MessagesDeleted(
            message_ids=ids,
            direct_id=message.direct_id,
            direct_last_id=max(doomed.direct_last_id, *left[-1:], 0),
            holders=holders,
            detached=state.uploads.linked_by(ids),
        )
    channel = state.channels[message.channel_id]
    topic = state.topics[(channel.id, topic_key(message.topic))]
    gone = frozenset(every[begin:])
    rest = topics.topic_without(topic, doomed.excerpt, gone)
    firsts = {}
    if channel.first_message_id in gone:
        firsts = {channel.id: topics.first_without(channel, doomed.excerpt, gone)}
    return MessagesDeleted(
        message_ids=ids,
        channel_id=channel.id,
        topic=message.topic,
        topics=() if rest is None else (rest,),
        emptied=((topic.channel_id, topic.key),) if rest is None else (),
        first_message_ids=firsts,
        holders=holders,
        detached=state.uploads.linked_by(ids),
    )


def _require_right(context: CommandContext, message: Message) -> None:
    state, actor, realm, now = context.state, context.actor, context.state.realm, context.now
    channel = state.channels.get(message.channel_id)
    any_one = [realm.can_delete_any_message_group]
    allowed = [realm.can_delete_own_message_group]
    if channel is not None:
        if channel.is_archived:
            raise Refused("You can't delete messages in an archived channel.")
        any_one.append(channel.can_delete_any_message_group)
        allowed.append(channel.can_delete_own_message_group)
    if any(permissions.holds(state, actor, setting) for setting in any_one):
        return
    sender = state.users[message.sender_id]
    is_own = sender.id == actor.id or (sender.bot is not None and sender.bot.owner_id == actor.id)
    permissions.require(
        is_own and any(permissions.holds(state, actor, setting) for setting in allowed),
        "You don't have permission to delete this message.",
    )
    limit = realm.message_content_delete_limit_seconds
    if limit is not None and now - message.sent_at > limit:
        raise Refused("The time limit for deleting this message has passed.")


def require_may_delete_any(context: CommandContext, channel_id: int) -> None:
    """Raise NotPermitted unless the actor can delete other people's messages in the channel."""
    state, actor = context.state, context.actor
    channel = state.channels[channel_id]
    if not any(
        permissions.holds(state, actor, owner.can_delete_any_message_group)
        for owner in (state.realm, channel)
    ):
        raise NotPermitted(
            "You don't have permission to delete other people's messages in this channel."
        )
