"""Reminders: a message that its reader wants to see again, at a time of their own."""

import msgspec

from tertulia.domain import names, permissions
from tertulia.domain.messages import notices
from tertulia.domain.messages.notices import Notice, Render
from tertulia.domain.messages.scheduled import require_future, require_text_room
from tertulia.domain.messages.sending import ToPeople
from tertulia.model.changes import ReminderRemoved, ReminderSet
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.messages import Message
from tertulia.model.scheduled import Reminder
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State

MAX_REMINDERS = 1000
"""Of one account."""
MAX_QUOTED = 8000
"""Characters of the message that a reminder quotes."""


def set_reminder(
    moment: Moment,
    render: Render,
    message_id: int,
    message: Message | None,
    deliver_at: int,
    note: str,
) -> Decision[int]:
    """Remind the actor of the message at that time (UNIX seconds). Returns the reminder's ID.

    `message` is what was found under `message_id`. Refused where there is none that the actor may
    read, for a time that is over, for a note that is too long, and where too many wait.
    """
    state, actor = moment.state, moment.actor
    if message is None or not permissions.reads_message(state, actor, message):
        raise Refused(f"No message with ID {message_id} exists.")
    require_future(moment, deliver_at)
    if len(note) > names.MAX_REMINDER_NOTE:
        raise Refused(f"A note can have at most {names.MAX_REMINDER_NOTE} characters.")
    if state.reminders.of_user.count(actor.id) >= MAX_REMINDERS:
        raise Refused(f"You can have at most {MAX_REMINDERS} reminders.")
    content = _heading(state, message) + _noted(note)
    reminder = Reminder(
        id=state.reminders.next_id(),
        user_id=actor.id,
        message_id=message.id,
        note=note,
        content=content,
        rendered=render(moment, content).html,
        deliver_at=deliver_at,
    )
    require_text_room(state.reminders.of_user[actor.id], reminder)
    return Decision(reminder.id, (ReminderSet(user_id=actor.id, reminder=reminder),))


def delete(moment: Moment, reminder_id: int) -> Decision[None]:
    """Do not remind of it. NoSuchItem."""
    reminder = moment.state.reminders.get(reminder_id)
    if reminder is None or reminder.user_id != moment.actor.id:
        raise NoSuchItem("reminder")
    return Decision(None, (_removed(reminder),))


def of_user(state: State, user_id: int) -> list[Reminder]:
    """Somebody's reminders, in the order of their times."""
    return sorted(state.reminders.of_user[user_id], key=lambda one: (one.deliver_at, one.id))


def deliver(
    moment: Moment, render: Render, reminder: Reminder, message: Message | None
) -> Decision[None]:
    """Remind somebody, if their account is active, of a message as it is now (None: it is gone).
    They are shown what they may still read."""
    state = moment.state
    if state.reminders.get(reminder.id) != reminder:
        return Decision(None)
    reader = state.users[reminder.user_id]
    if not reader.is_active:
        return Decision(None, (_removed(reminder),))
    if message is not None and permissions.reads_message(state, reader, message):
        text = _heading(state, message) + _noted(reminder.note) + _quoted(state, message)
    else:
        text = "You asked to be reminded of a message that you cannot read any more."
        text += _noted(reminder.note)
    notice = Notice(ToPeople(frozenset({reader.id})), text)
    # It quotes what the reader can read, and links what they can see.
    as_reader = msgspec.structs.replace(moment, actor_id=reader.id)
    sent = notices.sent(as_reader, [notice], render)
    return Decision(None, (*sent, _removed(reminder)))


def give_up(moment: Moment, render: Render, reminder: Reminder) -> Decision[None]:
    """The reminder cannot show the message: the user gets a message that says so, without
    anything that it says."""
    state = moment.state
    if state.reminders.get(reminder.id) != reminder:
        return Decision(None)
    text = (
        f"You asked to be reminded of message {reminder.message_id}, and the server could not"
        " prepare the reminder."
    )
    is_active = state.users[reminder.user_id].is_active
    people = [Notice(ToPeople(frozenset({reminder.user_id})), text)] if is_active else []
    return Decision(None, (*notices.sent(moment, people, render), _removed(reminder)))


def _heading(state: State, message: Message) -> str:
    if message.channel_id is None:
        return "You asked to be reminded of a direct message."
    channel = state.channels[message.channel_id]
    place = f"#**{channel.name}>{message.topic}@{message.id}**"
    return f"You asked to be reminded of {place}."


def _noted(note: str) -> str:
    return f" Your note:\n{notices.quoted(note, 'quote')}" if note.strip() else ""


def _quoted(state: State, message: Message) -> str:
    content = message.content
    if len(content) > MAX_QUOTED:
        content = content[:MAX_QUOTED] + "…"
    author = notices.person(state.users[message.sender_id])
    return f"\n\n{author} wrote:\n{notices.quoted(content, 'quote')}"


def _removed(reminder: Reminder) -> ReminderRemoved:
    return ReminderRemoved(user_id=reminder.user_id, reminder_id=reminder.id)
