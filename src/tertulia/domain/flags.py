"""What readers do with messages: read, star, collapse."""

from collections.abc import Sequence

from msgspec import Struct

from tertulia.model.changes import FlagsChanged, MessagesRead, MessagesUnread, UnreadMessage
from tertulia.model.messages import Flag, Message
from tertulia.state.moment import Decision, Moment


class Known(Struct, frozen=True, kw_only=True):
    """A message that the actor may read, and the actor's relation to it."""

    message: Message
    flags: Flag
    is_read: bool
    is_mentioned: bool


def _is_new(moment: Moment, known: Known) -> bool:
    """Whether the actor has no relation to the message yet."""
    return not (known.flags & Flag.RECORD or moment.state.received(moment.actor.id, known.message))


def mark_read(moment: Moment, messages: Sequence[Known]) -> Decision[set[int]]:
    """Mark the messages as read. The result is empty: none is ignored."""
    ids = tuple(known.message.id for known in messages if not known.is_read)
    if not ids:
        return Decision(set())
    return Decision(set(), (MessagesRead(user_id=moment.actor.id, message_ids=ids),))


def mark_unread(moment: Moment, messages: Sequence[Known]) -> Decision[set[int]]:
    """Mark the messages as unread. Returns the channels whose messages were left as they are,
    because the actor is not subscribed there, or nobody writes there any more."""
    state, actor = moment.state, moment.actor
    ignored: set[int] = set()
    unread: list[UnreadMessage] = []
    recorded: list[int] = []
    for known in messages:
        message = known.message
        channel_id = message.channel_id
        if channel_id is not None and not (
            state.is_subscribed(actor.id, channel_id) and not state.channels[channel_id].is_archived
        ):
            ignored.add(channel_id)
            continue
        if not known.is_read:
            continue
        if channel_id is not None and not known.flags & Flag.RECORD:
            subscription = state.subscriptions[(channel_id, actor.id)]
            if message.id <= state.unread_since(subscription):
                recorded.append(message.id)
        others: tuple[int, ...] = ()
        if channel_id is None:
            members = state.directs[message.direct_id].members
            others = tuple(user_id for user_id in members if user_id != actor.id)
        unread.append(
            UnreadMessage(
                id=message.id,
                channel_id=channel_id,
                topic=message.topic,
                others=others,
                mentioned=known.is_mentioned,
            )
        )
    if not unread:
        return Decision(ignored)
    change = MessagesUnread(user_id=actor.id, messages=tuple(unread), recorded=tuple(recorded))
    return Decision(ignored, (change,))


def change(
    moment: Moment, messages: Sequence[Known], flag: Flag, added: bool
) -> Decision[set[int]]:
    """Set or clear a sparse flag. The result is empty: none is ignored."""
    changed = [known for known in messages if bool(known.flags & flag) is not added]
    if not changed:
        return Decision(set())
    return Decision(
        set(),
        (
            FlagsChanged(
                user_id=moment.actor.id,
                message_ids=tuple(known.message.id for known in changed),
                flag=flag,
                added=added,
                recorded=tuple(k.message.id for k in changed if added and _is_new(moment, k)),
            ),
        ),
    )
