"""Scheduled messages and reminders. A message can be scheduled if its author could send it now.
When it's due, it's sent with the author's permissions at that time."""

from collections.abc import Iterable

import msgspec

from tertulia.domain import channel_access, names, permissions
from tertulia.domain.messages import bot_messages, sending
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import (
    AnyChange,
    MessageScheduled,
    MessageSent,
    ReminderRemoved,
    ReminderSet,
    ScheduledMessageChanged,
    ScheduledMessageRemoved,
)
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.messages import Message
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.users import ReachedUser, User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.texts import Texts

MAX_SCHEDULED = 1000
"""Per author."""
MAX_TEXT = 4_000_000
"""The most characters in the content and HTML of one person's scheduled messages, and of their
reminders, which every node keeps in memory."""


def schedule(
    context: CommandContext, draft: sending.MessageDraft, deliver_at: int, key_id: int | None
) -> Decision[int]:
    """Schedule the message for `deliver_at` (UNIX seconds). Return the scheduled message's ID.
    `key_id` is the access key that it's sent with, or None for the account's full access. Raise
    Refused for past times and too many messages, and as `sending.send`."""
    state, actor = context.state, context.actor
    require_future(context, deliver_at)
    if state.scheduled_messages.of_user.count(actor.id) >= MAX_SCHEDULED:
        raise Refused(f"You can have at most {MAX_SCHEDULED} scheduled messages.")
    next_id = state.scheduled_messages.next_id()
    scheduled = _as_scheduled(context, next_id, draft, deliver_at, key_id)
    require_text_room(state.scheduled_messages.of_user[actor.id], scheduled)
    return Decision(scheduled.id, (MessageScheduled(user_id=actor.id, message=scheduled),))


def change(
    context: CommandContext,
    before: ScheduledMessage,
    draft: sending.MessageDraft | None,
    deliver_at: int | None,
    key_id: int | None,
) -> Decision[bool]:
    """Replace the message, which is then sent with the access key `key_id`, or its time. None keeps
    the current one. Return False, and change nothing, if the message is no longer equal to
    `before`, which `draft` was made from.

    A message that couldn't be sent needs a new time. Raise NoSuchItem, or Refused as `schedule`.
    """
    if own_message(context.state, context.actor, before.id) != before:
        return Decision(False)
    if deliver_at is not None:
        require_future(context, deliver_at)
    elif before.failed:
        raise Refused(
            "This message couldn't be sent at the scheduled time. Schedule it for a new time."
        )
    # Rescheduled with full access, it no longer depends on a key.
    sent_with = None if key_id is None else before.key_id
    after = msgspec.structs.replace(
        before, deliver_at=deliver_at or before.deliver_at, key_id=sent_with
    )
    if draft is not None:
        after = _as_scheduled(context, before.id, draft, after.deliver_at, key_id)
        require_text_room(context.state.scheduled_messages.of_user[context.actor.id], after)
    after = msgspec.structs.replace(after, failed=False)
    return Decision(True, (ScheduledMessageChanged(user_id=context.actor.id, message=after),))


def delete(context: CommandContext, scheduled_id: int) -> Decision[None]:
    """Delete a scheduled message. Raise NoSuchItem."""
    scheduled = own_message(context.state, context.actor, scheduled_id)
    return Decision(None, (_removal_change(scheduled),))


def own_message(state: State, user: User, scheduled_id: int) -> ScheduledMessage:
    """Return the user's scheduled message. Raise NoSuchItem."""
    scheduled = state.scheduled_messages.get(scheduled_id)
    if scheduled is None or scheduled.user_id != user.id or not user.reaches(scheduled.channel_id):
        raise NoSuchItem("scheduled message")
    return scheduled


def scheduled_of(state: State, user: User) -> list[ScheduledMessage]:
    """Return a user's scheduled messages in chronological order."""
    reached = [
        scheduled
        for scheduled in state.scheduled_messages.of_user[user.id]
        if user.reaches(scheduled.channel_id)
    ]
    return sorted(reached, key=lambda scheduled: (scheduled.deliver_at, scheduled.id))


def author(state: State, scheduled: ScheduledMessage) -> User:
    """Return the message's author, restricted to the reach of the access key that scheduled it.
    Raise Refused if the key was revoked."""
    user = state.users[scheduled.user_id]
    if scheduled.key_id is None:
        return user
    key = state.access_keys.get(scheduled.key_id)
    if key is None:
        raise Refused("The access key that scheduled it was revoked, or it expired.")
    return ReachedUser.of(user, key.reach)


def destination(scheduled: ScheduledMessage) -> sending.ToChannel | sending.ToPeople:
    if scheduled.channel_id is not None:
        return sending.ToChannel(topic=scheduled.topic, channel_id=scheduled.channel_id)
    return sending.ToPeople(frozenset(scheduled.user_ids))


def deliver(
    context: CommandContext,
    render: Render,
    scheduled: ScheduledMessage,
    draft: sending.MessageDraft,
) -> Decision[None]:
    """Send a message that is due, as `draft`. If it's refused, it stays as failed and its author
    gets a message. Do nothing if it was changed or deleted in the meantime."""
    if context.state.scheduled_messages.get(scheduled.id) != scheduled:
        return Decision(None)
    try:
        writer = author(context.state, scheduled)
        permissions.require(writer.is_active, "The sender's account is deactivated.")
        as_author = msgspec.structs.replace(context, actor_id=writer.id, reach=writer.reach)
        sent = sending.send(as_author, draft)
    except Refused as refusal:
        return Decision(None, _failure_changes(context, render, scheduled, str(refusal)))
    return Decision(None, (*sent.changes, _removal_change(scheduled)))


def send_now(
    context: CommandContext, scheduled: ScheduledMessage, draft: sending.MessageDraft
) -> Decision[sending.Sent | None]:
    """Send the actor's scheduled message now, as `draft`. Return None if it has changed in the
    meantime. Raise NoSuchItem, or Refused as `sending.send`; then it stays scheduled."""
    if own_message(context.state, context.actor, scheduled.id) != scheduled:
        return Decision(None)
    sent = sending.send(context, draft)
    return Decision(sent.result, (*sent.changes, _removal_change(scheduled)))


def give_up(
    context: CommandContext, render: Render, scheduled: ScheduledMessage, reason: str
) -> Decision[None]:
    """Mark the message as failed for this reason, and notify its author. Do nothing if it was
    changed or deleted in the meantime."""
    if context.state.scheduled_messages.get(scheduled.id) != scheduled:
        return Decision(None)
    return Decision(None, _failure_changes(context, render, scheduled, reason))


def require_future(context: CommandContext, deliver_at: int) -> None:
    """Raise Refused unless the time (UNIX seconds) is in the future."""
    permissions.require(deliver_at > context.now, "The scheduled time must be in the future.")


def require_text_room(
    kept: Iterable[ScheduledMessage | Reminder], added: ScheduledMessage | Reminder
) -> None:
    """Raise Refused if a person's scheduled messages, or reminders, would become too large."""
    size = sum(len(item.content) + len(item.rendered) for item in kept if item.id != added.id)
    if size + len(added.content) + len(added.rendered) > MAX_TEXT:
        raise Refused(
            "Your scheduled messages or reminders take up too much space. Delete some of them,"
            " then try again."
        )


def _failure_changes(
    context: CommandContext, render: Render, scheduled: ScheduledMessage, reason: str
) -> list[AnyChange]:
    failed = msgspec.structs.replace(scheduled, failed=True)
    changes: list[AnyChange] = [ScheduledMessageChanged(user_id=scheduled.user_id, message=failed)]
    if context.state.users[scheduled.user_id].is_active:
        words = bot_messages.texts_for(context.state, scheduled.user_id)
        text = (
            f"{words('not_sent')}\n{bot_messages.fenced_block(reason)}\n{words('still_scheduled')}"
        )
        changes += bot_messages.posting_changes(
            context, [bot_messages.to_user(scheduled.user_id, text)], render
        )
    return changes


def _as_scheduled(
    context: CommandContext,
    scheduled_id: int,
    draft: sending.MessageDraft,
    deliver_at: int,
    key_id: int | None,
) -> ScheduledMessage:
    """Return the scheduled message that sending the draft now would correspond to. Raise as
    `sending.send`."""
    actor = context.actor
    (would_be,) = sending.sending_changes([(context, draft)])
    message = would_be.message
    others: tuple[int, ...] = ()
    if message.channel_id is None:
        begun = would_be.new_conversation
        members = (begun or context.state.directs[message.direct_id]).members
        others = tuple(user_id for user_id in members if user_id != actor.id) or (actor.id,)
    return ScheduledMessage(
        id=scheduled_id,
        user_id=actor.id,
        channel_id=message.channel_id,
        topic=message.topic,
        user_ids=others,
        content=draft.content,
        rendered=draft.rendered.html,
        deliver_at=deliver_at,
        client=draft.client,
        read_by_sender=draft.read_by_sender,
        key_id=key_id,
    )


def _removal_change(scheduled: ScheduledMessage) -> ScheduledMessageRemoved:
    return ScheduledMessageRemoved(user_id=scheduled.user_id, scheduled_id=scheduled.id)


MAX_REMINDERS = 1000
"""Per account."""
MAX_QUOTED = 8000
"""The most characters of the message that a reminder quotes."""


def set_reminder(
    context: CommandContext,
    render: Render,
    message_id: int,
    message: Message | None,
    deliver_at: int,
    note: str,
) -> Decision[int]:
    """Set a reminder of the message for the actor at that time (UNIX seconds). Return the
    reminder's ID.

    `message` is the message with ID `message_id`, if it exists. Raise Refused if the actor can't
    read it, for past times, long notes, and too many reminders.
    """
    state, actor = context.state, context.actor
    if message is None or not channel_access.reads_message(state, actor, message):
        raise Refused(f"No message with ID {message_id} exists.")
    require_future(context, deliver_at)
    if len(note) > names.MAX_REMINDER_NOTE:
        raise Refused(f"A note can have at most {names.MAX_REMINDER_NOTE} characters.")
    if state.reminders.of_user.count(actor.id) >= MAX_REMINDERS:
        raise Refused(f"You can have at most {MAX_REMINDERS} reminders.")
    words = bot_messages.texts_for(state, actor.id)
    content = _heading(state, words, message) + _noted(words, note)
    reminder = Reminder(
        id=state.reminders.next_id(),
        user_id=actor.id,
        message_id=message.id,
        note=note,
        content=content,
        rendered=render(context, content).html,
        deliver_at=deliver_at,
    )
    require_text_room(state.reminders.of_user[actor.id], reminder)
    return Decision(reminder.id, (ReminderSet(user_id=actor.id, reminder=reminder),))


def delete_reminder(context: CommandContext, reminder_id: int) -> Decision[None]:
    """Delete a reminder. Raise NoSuchItem."""
    reminder = context.state.reminders.get(reminder_id)
    if reminder is None or reminder.user_id != context.actor.id:
        raise NoSuchItem("reminder")
    return Decision(None, (_reminder_removal_change(reminder),))


def reminders_of(state: State, user_id: int) -> list[Reminder]:
    """Return a user's reminders in chronological order."""
    return sorted(
        state.reminders.of_user[user_id], key=lambda reminder: (reminder.deliver_at, reminder.id)
    )


def deliver_reminder(
    context: CommandContext, render: Render, reminder: Reminder, message: Message | None
) -> Decision[None]:
    """Remind an active user of a message, quoting what they can still read of it. `message` is None
    if it was deleted."""
    state = context.state
    if state.reminders.get(reminder.id) != reminder:
        return Decision(None)
    reader = state.users[reminder.user_id]
    if not reader.is_active:
        return Decision(None, (_reminder_removal_change(reminder),))
    words = bot_messages.texts_for(state, reader.id)
    if message is not None and channel_access.reads_message(state, reader, message):
        text = _heading(state, words, message) + _noted(words, reminder.note)
        text += _quoted(state, words, message)
    else:
        text = words("reminder_unreadable") + _noted(words, reminder.note)
    bot_message = bot_messages.to_user(reader.id, text)
    as_reader = msgspec.structs.replace(context, actor_id=reader.id)
    sent = bot_messages.posting_changes(as_reader, [bot_message], render)
    return Decision(None, (*sent, _reminder_removal_change(reminder)))


def give_up_reminder(context: CommandContext, render: Render, reminder: Reminder) -> Decision[None]:
    """Send the user the reminder without its message, which can't be shown."""
    state = context.state
    if state.reminders.get(reminder.id) != reminder:
        return Decision(None)
    sent: list[MessageSent] = []
    if state.users[reminder.user_id].is_active:
        words = bot_messages.texts_for(state, reminder.user_id)
        text = words("reminder_failed", id=reminder.message_id)
        bot_message = bot_messages.to_user(reminder.user_id, text)
        sent = bot_messages.posting_changes(context, [bot_message], render)
    return Decision(None, (*sent, _reminder_removal_change(reminder)))


def _heading(state: State, words: Texts, message: Message) -> str:
    if message.channel_id is None:
        return words("reminder_of_direct")
    channel = state.channels[message.channel_id]
    place = f"#**{channel.name}>{message.topic}@{message.id}**"
    return words("reminder", place=place)


def _noted(words: Texts, note: str) -> str:
    if not note.strip():
        return ""
    return f" {words('reminder_note')}\n{bot_messages.fenced_block(note, 'quote')}"


def _quoted(state: State, words: Texts, message: Message) -> str:
    content = message.content
    if len(content) > MAX_QUOTED:
        content = content[:MAX_QUOTED] + "…"
    author = bot_messages.silent_mention(state.users[message.sender_id])
    return f"\n\n{words('wrote', person=author)}\n{bot_messages.fenced_block(content, 'quote')}"


def _reminder_removal_change(reminder: Reminder) -> ReminderRemoved:
    return ReminderRemoved(user_id=reminder.user_id, reminder_id=reminder.id)
