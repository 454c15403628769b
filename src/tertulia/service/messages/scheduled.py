"""Scheduled messages and reminders."""

from collections.abc import Sequence
from typing import Unpack

from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.accounts import access_keys
from tertulia.domain.accounts.access_keys import KeyCapability
from tertulia.domain.messages import scheduled
from tertulia.domain.messages.sending import MessageDraft, Sent, ToChannel, ToPeople
from tertulia.model.errors import Conflict, Refused
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.users import User
from tertulia.service.messages.reading import stored_message
from tertulia.service.messages.sending import DraftOptions, draft_of, to_people, to_topic
from tertulia.service.node import Caller, Node, retry_on_conflict


def scheduled_destination(
    is_direct: bool, ids: Sequence[int], topic: str | None
) -> ToChannel | ToPeople:
    """Return the destination: these people, or a topic of the one channel."""
    if is_direct:
        return to_people(ids)
    if len(ids) != 1:
        raise Refused("A message can go to only one channel.")
    return to_topic(ids[0], topic)


async def schedule_message(
    caller: Caller,
    to: ToChannel | ToPeople,
    content: str,
    deliver_at: int,
    **options: Unpack[DraftOptions],
) -> int:
    """Schedule a message for that UNIX time, and return the scheduled message's ID.

    Raise as `tertulia.domain.messages.scheduled.schedule`; Refused for invalid content.
    """
    text = names.message_content(content)
    draft = await draft_of(caller.node, caller.user, to, text, **options)
    return await caller.submit(scheduled.schedule, draft, deliver_at, _lesser_key(caller))


def _lesser_key(caller: Caller) -> int | None:
    """Return the caller's access key if it's limited."""
    whole = {KeyCapability.FULL, KeyCapability.EVERYTHING}
    if caller.key_id is None or not access_keys.lacks(caller.key, frozenset(whole)):
        return None
    return caller.key_id


class ScheduledEdit(Struct, frozen=True, kw_only=True):
    """Changes to a scheduled message. None keeps a value."""

    is_direct: bool | None = None
    """Whether it becomes a direct message. Requires `to` and, for channels, a topic."""
    to: Sequence[int] | None = None
    """One channel ID, or user IDs."""
    topic: str | None = None
    content: str | None = None
    deliver_at: int | None = None
    """UNIX seconds."""

    @property
    def concerns_message(self) -> bool:
        """Whether the edit changes more than the time."""
        parts = (self.is_direct, self.to, self.topic, self.content)
        return any(part is not None for part in parts)


async def change_scheduled(
    caller: Caller, scheduled_id: int, edit: ScheduledEdit, *, client: str
) -> None:
    """Change a scheduled message of the caller.

    Raise as `tertulia.domain.messages.scheduled.change`; Refused if the edit is empty.
    """
    if edit.deliver_at is None and not edit.concerns_message:
        raise Refused("Nothing to change: the request has no new value.")

    async def attempt() -> None:
        before = scheduled.own_message(caller.state, caller.user, scheduled_id)
        draft = await _changed(caller, before, edit, client) if edit.concerns_message else None
        key_id = _lesser_key(caller)
        if not await caller.submit(scheduled.change, before, draft, edit.deliver_at, key_id):
            raise Conflict

    await retry_on_conflict(attempt)


async def send_scheduled_now(caller: Caller, scheduled_id: int) -> Sent:
    """Send a scheduled message of the caller now.

    Raise as `tertulia.domain.messages.scheduled.send_now`: NoSuchItem if it was sent already.
    """

    async def attempt() -> Sent:
        waiting = scheduled.own_message(caller.state, caller.user, scheduled_id)
        draft = await _draft_of(caller.node, waiting, caller.user)
        sent = await caller.submit(scheduled.send_now, waiting, draft)
        if sent is None:
            raise Conflict
        return sent

    return await retry_on_conflict(attempt)


async def _changed(
    caller: Caller, before: ScheduledMessage, edit: ScheduledEdit, client: str
) -> MessageDraft:
    content = before.content
    if edit.content is not None:
        content = names.message_content(edit.content)
    return await draft_of(
        caller.node,
        caller.user,
        _new_destination(before, edit),
        content,
        client=client,
        read_by_sender=before.read_by_sender,
    )


def _new_destination(before: ScheduledMessage, edit: ScheduledEdit) -> ToChannel | ToPeople:
    if edit.is_direct is not None:
        if edit.to is None:
            raise Refused("To change the message's type, set its recipients in 'to' as well.")
        return scheduled_destination(edit.is_direct, edit.to, edit.topic)
    if before.channel_id is None:
        return scheduled.destination(before) if edit.to is None else to_people(edit.to)
    to = [before.channel_id] if edit.to is None else edit.to
    return scheduled_destination(False, to, before.topic if edit.topic is None else edit.topic)


# Sending what is due


async def send_scheduled(node: Node, message: ScheduledMessage) -> None:
    """Send a scheduled message. If the verb refuses it, the author gets a message about it. Raise
    the errors of `draft_of`."""
    draft = await _draft_of(node, message, scheduled.author(node.state, message))
    await node.log.submit(None, scheduled.deliver, node.renderer.render, message, draft)


async def _draft_of(node: Node, message: ScheduledMessage, author: User) -> MessageDraft:
    return await draft_of(
        node,
        author,
        scheduled.destination(message),
        message.content,
        client=message.client,
        read_by_sender=message.read_by_sender,
    )


async def set_reminder(caller: Caller, message_id: int, deliver_at: int, note: str) -> int:
    """Set a reminder of a message for that UNIX time, and return its ID.

    Raise as `tertulia.domain.messages.scheduled.set_reminder`.
    """
    message = await stored_message(caller.node, message_id)
    return await caller.submit(
        scheduled.set_reminder, caller.render, message_id, message, deliver_at, note
    )


async def deliver_reminder(node: Node, reminder: Reminder) -> None:
    """Send the reminder, with the message's current content."""
    message = await stored_message(node, reminder.message_id)
    await node.log.submit(None, scheduled.deliver_reminder, node.renderer.render, reminder, message)
