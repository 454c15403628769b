"""What people add to messages: reactions, and what they do with widgets."""

from tertulia.domain.messages import reactions, widgets
from tertulia.domain.messages.reactions import ReactedMessage, RequestedEmoji
from tertulia.model.errors import NoSuchMessage
from tertulia.service.caller import Caller
from tertulia.service.conflicts import retry_on_conflict
from tertulia.state.moment import Verb
from tertulia.store import message_details


async def add_reaction(caller: Caller, message_id: int, emoji: RequestedEmoji) -> None:
    """React to a message. Raises as `tertulia.domain.messages.reactions.react`."""
    await _react(caller, message_id, reactions.react, emoji)


async def remove_reaction(caller: Caller, message_id: int, emoji: RequestedEmoji) -> None:
    """Take a reaction of the caller's back. Raises as
    `tertulia.domain.messages.reactions.take_back`."""
    await _react(caller, message_id, reactions.take_back, emoji)


async def _react(caller: Caller, message_id: int, verb: Verb[None], emoji: RequestedEmoji) -> None:
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
    """Vote in a poll, add to a list of things to do, and the like: JSON text, as the widget takes
    it. Raises as `tertulia.domain.messages.widgets.submit`."""

    async def attempt() -> None:
        seen = await _seen(caller, message_id)
        await caller.submit(
            widgets.submit,
            seen.message,
            seen.details.submessages,
            seen.holders,
            seen.head,
            kind,
            content,
        )

    await retry_on_conflict(attempt)


async def _seen(caller: Caller, message_id: int) -> message_details.DetailedMessage:
    """The message and what hangs on it. NoSuchMessage where there is none; whether the caller may
    read it is for the verb to say."""
    found = await caller.node.store.read(
        message_details.detailed_message, caller.user.id, message_id
    )
    if found is None:
        raise NoSuchMessage
    return found
