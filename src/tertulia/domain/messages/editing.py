"""Editing messages, and adding link previews to them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages import attachments, sending
from tertulia.model.changes import MessageEdited, PreviewsGivenUp
from tertulia.model.errors import Conflict, NoSuchMessage, Refused
from tertulia.model.messages import ANY_MENTION, Flag, Message, PendingPreview, Rendered
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.messages import entries_of
from tertulia.state.state import State

GRACE_SECONDS: Final = 20
"""Extra time, in seconds, for an edit that was begun within the time limit."""
_BY_CONTENT: Final = ANY_MENTION | Flag.HAS_ALERT_WORD
"""Flags that follow from a message's content."""


class LoadedMessage(Struct, frozen=True, kw_only=True):
    """A message that was read before the verb decides, as of an entry of the log."""

    seq: int
    message: Message
    flags: Mapping[int, Flag] = {}
    """Sparse flags of all users on it."""
    read_by: Collection[int] = frozenset()
    """The people in `may_be_unread` who have marked it as read."""
    has_widget: bool = False
    """Whether it's a poll, a to-do list, or a form."""


def require_current(context: CommandContext, loaded: LoadedMessage, *more: object) -> Message:
    """Return the loaded message.

    Raise Conflict if it, or one of the items in `more`, has changed since it was loaded;
    NoSuchMessage if the actor can't read it.
    """
    if context.state.recent_writes.since(loaded.seq, (*entries_of(loaded.message), *more)):
        raise Conflict
    require_readable(context, loaded.message)
    return loaded.message


def require_readable(context: CommandContext, message: Message) -> None:
    """Raise NoSuchMessage unless the actor can read it."""
    if not channel_access.reads_message(context.state, context.actor, message):
        raise NoSuchMessage


def edit(
    context: CommandContext, loaded: LoadedMessage, composed: sending.ComposedMessage
) -> Decision[tuple[int, ...]]:
    """Change the content of the actor's message. Return the files that it no longer links. Raise
    Refused if the organization or its time limit doesn't allow editing; WildcardNotAllowed;
    Conflict."""
    message, state = require_current(context, loaded), context.state
    require_editable(context, message)
    permissions.require(not loaded.has_widget, "You can't edit polls, to-do lists, and forms.")
    content, rendered = composed.content, composed.rendered
    participants = composed.topic_participants
    if content == message.content:
        return Decision(())
    if message.channel_id is not None:
        channel = state.channels[message.channel_id]
        sending.check_wildcards(context, channel, rendered, participants)
    received = frozenset(receivers(state, message))
    direct = message.channel_id is None
    after = sending.mentions(context, rendered, participants, received, direct=direct)
    for user_id in state.alerts.alerted_by(content) & received:
        after[user_id] = after.get(user_id, Flag(0)) | Flag.HAS_ALERT_WORD
    linked = set(state.uploads.linked_by([message.id]))
    claimed = attachments.claimed_files(
        state, context.actor, content, composed.opened_attachments | linked
    )
    claimed_ids = {attachment.id for attachment in claimed}
    detached = tuple(sorted(linked - claimed_ids))
    change = edit_change(
        state,
        loaded,
        msgspec.structs.replace(
            message,
            content=content,
            rendered=rendered.html,
            has_link=rendered.has_link or bool(state.uploads.linked_files(content)),
            has_image=rendered.has_image,
            has_attachment=bool(claimed),
            is_me=rendered.is_me,
            mentions_all=rendered.mentions_all and message.channel_id is not None,
        ),
        after,
    )
    change = msgspec.structs.replace(
        change,
        attached=tuple(sorted(claimed_ids - linked)),
        detached=detached,
        awaits_previews=bool(rendered.pages),
    )
    return Decision(detached, (change,))


def edit_change(
    state: State, loaded: LoadedMessage, message: Message, after: Mapping[int, Flag]
) -> MessageEdited:
    """Return the change that sets a message's content. `after` are the flags that follow from the
    new content."""
    before = {user_id: flag & _BY_CONTENT for user_id, flag in loaded.flags.items()}
    mentioned = _gained_flags(after, before)
    unmentioned = _gained_flags(before, after)
    return MessageEdited(
        message=message,
        was_content=loaded.message.content,
        was_rendered=loaded.message.rendered,
        mentioned=mentioned,
        unmentioned=unmentioned,
        flags=_with(loaded.flags, mentioned, unmentioned),
        read_by=read_by(state, loaded),
    )


def require_editable(context: CommandContext, message: Message) -> None:
    """Raise Refused unless the actor can edit the message's content now."""
    realm = context.state.realm
    if message.sender_id != context.actor.id:
        raise Refused("Only the sender can edit the content of a message.")
    permissions.require(
        realm.allow_message_editing, "This organization doesn't allow editing messages."
    )
    limit = realm.message_content_edit_limit_seconds
    if limit is not None and context.now - message.sent_at > limit + GRACE_SECONDS:
        raise Refused("The time limit for editing this message has passed.")
    channel = context.state.channels.get(message.channel_id)
    if channel is not None and channel.is_archived:
        raise Refused("You can't edit messages in an archived channel.")


def receivers(state: State, message: Message) -> Iterable[int]:
    """Return the accounts that the message was delivered to."""
    if message.channel_id is None:
        return state.directs[message.direct_id].members
    ever = state.subscriptions.of_channel[message.channel_id]
    return (user_id for user_id, subscription in ever.items() if subscription.covers(message.id))


def may_be_unread(state: State, message: Message, flags: Mapping[int, Flag]) -> Iterable[int]:
    """Return the accounts for which the message is unread unless they marked it as read."""
    if message.channel_id is None:
        return state.directs[message.direct_id].members
    return (
        user_id
        for user_id, subscription in state.subscriptions.of_channel[message.channel_id].items()
        if subscription.is_active
        and (
            message.id > state.unread_since(subscription)
            or flags.get(user_id, Flag(0)) & Flag.RECORD
        )
    )


def read_by(state: State, target: LoadedMessage) -> tuple[int, ...]:
    """Return the people who have marked the message as read, from memory if it's current there,
    otherwise as loaded."""
    message, loaded = target.message, state.unread.readers
    return tuple(
        sorted(
            user_id
            for user_id in may_be_unread(state, message, target.flags)
            if (
                message.id in loaded[user_id].read
                if user_id in loaded
                else user_id in target.read_by
            )
        )
    )


def _gained_flags(these: Mapping[int, Flag], others: Mapping[int, Flag]) -> dict[int, Flag]:
    """Return the flags in `these` that aren't in `others`."""
    flags = {user_id: flag & ~others.get(user_id, Flag(0)) for user_id, flag in these.items()}
    return {user_id: flag for user_id, flag in sorted(flags.items()) if flag}


def _with(
    flags: Mapping[int, Flag], gained: Mapping[int, Flag], lost: Mapping[int, Flag]
) -> dict[int, Flag]:
    result = dict(flags)
    for user_id, flag in lost.items():
        result[user_id] = result.get(user_id, Flag(0)) & ~flag
    for user_id, flag in gained.items():
        result[user_id] = result.get(user_id, Flag(0)) | flag
    return {user_id: flag for user_id, flag in sorted(result.items()) if flag}


def show_preview(
    context: CommandContext, pending: PendingPreview, loaded: LoadedMessage, rendered: Rendered
) -> Decision[None]:
    """Add the link previews to the message, as the server. Do nothing if it no longer waits for
    these previews, because it was edited or another node was faster. Raise Conflict if the message
    has changed in another way."""
    state, message = context.state, loaded.message
    if state.pending_previews.get(message.id) != pending:
        return Decision(None)
    if state.recent_writes.since(loaded.seq, entries_of(message)):
        raise Conflict
    if rendered.html == message.rendered or not state.realm.inline_url_embed_preview:
        return give_up(context, pending)
    change = MessageEdited(
        # A file that it shows may have been deleted in the meantime.
        message=msgspec.structs.replace(
            message,
            rendered=rendered.html,
            has_link=rendered.has_link,
            has_image=rendered.has_image,
        ),
        flags=dict(sorted(loaded.flags.items())),
        read_by=read_by(state, loaded),
        rendering_only=True,
    )
    return Decision(None, (change,))


def give_up(context: CommandContext, pending: PendingPreview) -> Decision[None]:
    """Stop waiting for the message's link previews."""
    if context.state.pending_previews.get(pending.message_id) != pending:
        return Decision(None)
    return Decision(None, (PreviewsGivenUp(message_id=pending.message_id),))
