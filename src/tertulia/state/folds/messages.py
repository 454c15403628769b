"""Folds of messages and how they are read."""

import msgspec

from tertulia.model import changes
from tertulia.model.channels import Topic, topic_key
from tertulia.model.counters import Counter
from tertulia.model.messages import Flag
from tertulia.state.folds.attachments import claim
from tertulia.state.folds.previews import await_previews
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.MessageSent)
def _(state: State, change: changes.MessageSent) -> None:
    message = change.message
    state.counters.put(Counter(name="messages", last=message.id))
    state.touched.note((message.conversation,), state.seq + 1)
    if message.channel_id is not None:
        key = topic_key(message.topic)
        topic = state.topics.get((message.channel_id, key))
        state.topics.put(
            Topic(
                channel_id=message.channel_id,
                key=key,
                name=message.topic,
                last_message_id=message.id,
                message_count=topic.message_count + 1 if topic else 1,
            )
        )
        channel = state.channels[message.channel_id]
        # The channel's row is written for the first message of a day, not for each.
        if channel.first_message_id is None or (
            message.sent_at - (channel.last_message_at or 0) >= _RECENTLY
        ):
            state.channels.put(
                msgspec.structs.replace(
                    channel,
                    first_message_id=channel.first_message_id or message.id,
                    last_message_at=message.sent_at,
                )
            )
    else:
        if change.new_conversation is not None:
            state.directs.put(change.new_conversation)
            state.unread.began(change.new_conversation.id)
        conversation = state.directs[message.direct_id]
        state.directs.put(revised(conversation, {"last_message_id": message.id}))
    state.sent.note(change)
    state.unread.sent(message)
    claim(state, message.id, change.attachment_ids)
    if change.awaits_previews:
        await_previews(state, message.id)
    for user_id, flag in change.flags.items():
        state.unread.flag(user_id, (message.id,), flag, added=True)
    for user_id in change.readers:
        state.unread.mark(user_id, (message.id,), read=True)
    if change.widget is not None:
        state.counters.put(Counter(name="submessages", last=change.widget.id))


_RECENTLY = 86400


@FOLDS.of(changes.FlagsChanged)
def _(state: State, change: changes.FlagsChanged) -> None:
    if change.recorded:
        state.unread.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
        state.unread.mark(change.user_id, change.recorded, read=True)
    state.unread.flag(change.user_id, change.message_ids, change.flag, added=change.added)


@FOLDS.of(changes.MessagesRead)
def _(state: State, change: changes.MessagesRead) -> None:
    state.unread.mark(change.user_id, change.message_ids, read=True)


@FOLDS.of(changes.MessagesUnread)
def _(state: State, change: changes.MessagesUnread) -> None:
    if change.recorded:
        state.unread.flag(change.user_id, change.recorded, Flag.RECORD, added=True)
    state.unread.mark(change.user_id, tuple(m.id for m in change.messages), read=False)
