"""Deleting messages."""

from collections.abc import Sequence

from tertulia.domain import permissions, topics
from tertulia.domain.editing import no_such_message, require_readable
from tertulia.domain.topics import Excerpt
from tertulia.model.changes import MessagesDeleted
from tertulia.model.channels import Topic
from tertulia.model.errors import Overtaken, Refused
from tertulia.model.messages import Message
from tertulia.state.moment import Decision, Moment


def delete(
    moment: Moment,
    seq: int,
    found: Sequence[Message],
    excerpt: Excerpt,
    holders: frozenset[int],
    direct_last_id: int,
) -> Decision[None]:
    """Delete messages of one conversation, as they were at the entry `seq`.

    `excerpt` is of their topic; `direct_last_id` is the newest other message of their direct
    conversation; `holders` have a sparse flag on one of them. Refused, Overtaken.
    """
    state = moment.state
    if state.touched.since(seq, (*(m.id for m in found), *{m.conversation for m in found})):
        raise Overtaken
    for message in found:
        require_readable(moment, message)
        _require_right(moment, message)
    return Decision(None, (deleted(moment, found, excerpt, holders, direct_last_id),))


def deleted(
    moment: Moment,
    found: Sequence[Message],
    excerpt: Excerpt,
    holders: frozenset[int],
    direct_last_id: int,
) -> MessagesDeleted:
    """The change that deletes the messages, which are of one conversation and not none."""
    state, one = moment.state, found[0]
    ids = tuple(message.id for message in found)
    if one.channel_id is None:
        return MessagesDeleted(
            message_ids=ids,
            direct_id=one.direct_id,
            direct_last_id=direct_last_id,
            holders=tuple(sorted(holders)),
        )
    channel = state.channels[one.channel_id]
    topic: Topic | None = topics.topic_of(state, channel.id, one.topic)
    if topic is None:
        raise no_such_message()
    gone = frozenset(ids)
    rest = topics.without(topic, excerpt, gone)
    firsts = {}
    if channel.first_message_id in gone:
        firsts = {channel.id: topics.first_without(channel, excerpt, gone)}
    return MessagesDeleted(
        message_ids=ids,
        channel_id=channel.id,
        topic=one.topic,
        topics=() if rest is None else (rest,),
        emptied=((topic.channel_id, topic.key),) if rest is None else (),
        first_message_ids=firsts,
        holders=tuple(sorted(holders)),
    )


def _require_right(moment: Moment, message: Message) -> None:
    state, actor, realm, now = moment.state, moment.actor, moment.state.realm, moment.now
    channel = state.channels.get(message.channel_id)
    any_one = [realm.can_delete_any_message_group]
    own = [realm.can_delete_own_message_group]
    if channel is not None:
        if channel.is_archived:
            raise Refused("Messages of an archived channel cannot be deleted.")
        any_one.append(channel.can_delete_any_message_group)
        own.append(channel.can_delete_own_message_group)
    if any(permissions.holds(state, actor, setting, now) for setting in any_one):
        return
    sender = state.users[message.sender_id]
    is_own = sender.id == actor.id or (sender.bot is not None and sender.bot.owner_id == actor.id)
    permissions.require(
        is_own and any(permissions.holds(state, actor, setting, now) for setting in own),
        "You are not allowed to delete this message.",
    )
    limit = realm.message_content_delete_limit_seconds
    if limit is not None and now - message.sent_at > limit:
        raise Refused("The time in which this message could be deleted is over.")


def may_delete_any(moment: Moment, channel_id: int) -> None:
    """Refuse to who may not delete the messages of others in the channel."""
    state, actor, now = moment.state, moment.actor, moment.now
    channel = state.channels[channel_id]
    permissions.require(
        permissions.holds(state, actor, state.realm.can_delete_any_message_group, now)
        or permissions.holds(state, actor, channel.can_delete_any_message_group, now),
        "You are not allowed to delete messages here.",
    )
