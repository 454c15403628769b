"""Reactions, widgets, and pins."""

from tertulia.domain.messages import pins, widgets
from tertulia.domain.messages.reactions import ReactedMessage, RequestedEmoji
from tertulia.model.errors import NoSuchMessage
from tertulia.service.messages import preconditions
from tertulia.service.node import Caller, retry_on_conflict
from tertulia.state.decision import Verb
from tertulia.store import message_details


async def change_reaction(
    caller: Caller, message_id: int, verb: Verb[None], emoji: RequestedEmoji
) -> None:
    """Add or remove a reaction. `verb` is `react` or `take_back` of
    `tertulia.domain.messages.reactions`, and determines the errors."""

    async def attempt() -> None:
        seen = await _seen(caller, message_id)
        reacted = ReactedMessage(
            seq=seen.head,
            message=seen.message,
            flags=seen.relation.flags,
            reactions=seen.details.reactions,
            holders=seen.holders,
        )
        await caller.submit(verb, reacted, emoji)

    await retry_on_conflict(attempt)


async def use_widget(caller: Caller, message_id: int, kind: str, content: str) -> None:
    """Add a submessage, such as a vote in a poll, as JSON text. Raise as
    `tertulia.domain.messages.widgets.add_submessage`."""

    async def attempt() -> None:
        seen = await _seen(caller, message_id)
        await caller.submit(
            widgets.add_submessage,
            seen.message,
            seen.details.submessages,
            seen.holders,
            seen.head,
            kind,
            content,
        )

    await retry_on_conflict(attempt)


async def _seen(caller: Caller, message_id: int) -> message_details.DetailedMessage:
    """Return the message with its details. Raise NoSuchMessage. The verb checks permissions."""
    detailed = await caller.node.store.read(
        message_details.detailed_message, caller.user.id, message_id
    )
    if detailed is None:
        raise NoSuchMessage
    return detailed


async def pin_message(caller: Caller, message_id: int) -> None:
    async def attempt() -> None:
        loaded = await preconditions.to_edit(caller.node.log, message_id)
        await caller.submit(pins.pin, loaded)

    await retry_on_conflict(attempt)
