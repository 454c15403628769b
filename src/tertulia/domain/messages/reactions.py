"""Reactions to messages."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tertulia.domain import channel_access
from tertulia.domain.organization import emoji
from tertulia.model.changes import ReactionAdded, ReactionRemoved
from tertulia.model.errors import Conflict, NoSuchMessage, NoSuchReaction, ReactionExists, Refused
from tertulia.model.messages import Flag, Message, place_of
from tertulia.model.reactions import Emoji, EmojiKind, Reaction
from tertulia.state.decision import CommandContext, Decision

MAX_DISTINCT_EMOJI: Final = 100
"""The most different emoji on one message."""
MAX_REACTIONS_PER_USER: Final = 50
"""The most reactions of one account to one message."""
CONCURRENT_REACTIONS: Final = 50
"""The most reactions to one message that are added concurrently. If a message has room for fewer
than this many different emoji, they are added one after the other, so that they don't exceed the
limit."""


class ReactedMessage(Struct, frozen=True, kw_only=True):
    """A message as of the log's entry `seq`, with the actor's flags, its reactions, and the users
    who have a record of it although it wasn't delivered to them."""

    seq: int
    message: Message
    flags: Flag
    reactions: Sequence[Reaction]
    holders: tuple[int, ...]


class RequestedEmoji(Struct, frozen=True, kw_only=True):
    """The emoji that a request names. `neutral` means that the request uses the neutral name of the
    emoji's kind."""

    name: str | None = None
    code: str | None = None
    kind: EmojiKind | None = None
    neutral: bool = False


def react(context: CommandContext, on: ReactedMessage, wanted: RequestedEmoji) -> Decision[None]:
    """Add a reaction.

    Raise NoSuchMessage, ReactionExists, Conflict, and Refused for unknown emoji. An emoji that the
    message already has keeps its name there, even if it's deactivated by now.
    """
    state, actor = context.state, context.actor
    _check(context, on)
    present = _existing(context, on, wanted)
    if present is not None:
        chosen = Emoji(kind=present.kind, code=present.code, name=present.name)
    else:
        chosen = emoji.find_emoji(state, wanted.name or "", wanted.code, wanted.kind)
        _check_emoji(context, on)
    reactions = [reaction for reaction in on.reactions if reaction.user_id == actor.id]
    if any((reaction.kind, reaction.code) == (chosen.kind, chosen.code) for reaction in reactions):
        raise ReactionExists
    if len(reactions) >= MAX_REACTIONS_PER_USER:
        raise Refused(
            f"You can add at most {MAX_REACTIONS_PER_USER} reactions to a message. "
            "Remove one first."
        )
    added = Reaction(
        message_id=on.message.id,
        user_id=actor.id,
        kind=chosen.kind,
        code=chosen.code,
        name=chosen.name,
        neutral=wanted.neutral,
    )
    is_new = not (on.flags & Flag.RECORD or state.received(actor.id, on.message))
    change = ReactionAdded(
        reaction=added, place=place_of(on.message), recorded=is_new, holders=on.holders
    )
    return Decision(None, (change,))


def _check_emoji(context: CommandContext, on: ReactedMessage) -> None:
    """Raise Refused for one more emoji if the message has too many."""
    present = len({(reaction.kind, reaction.code) for reaction in on.reactions})
    if present >= MAX_DISTINCT_EMOJI:
        raise Refused(
            f"A message can have at most {MAX_DISTINCT_EMOJI} different emoji. "
            "Use one that it already has."
        )
    if present + CONCURRENT_REACTIONS >= MAX_DISTINCT_EMOJI and context.state.recent_writes.since(
        on.seq, [("reactions", on.message.id)]
    ):
        raise Conflict


def _existing(
    context: CommandContext, on: ReactedMessage, wanted: RequestedEmoji
) -> Reaction | None:
    """Return a reaction with the same emoji, by anyone."""
    code, kind = wanted.code, wanted.kind
    if code is None:
        try:
            result = emoji.find_emoji(context.state, wanted.name or "", kind=kind)
        except Refused:
            return None
        code, kind = result.code, result.kind
    return next(
        (
            reaction
            for reaction in on.reactions
            if reaction.code == code and kind in {None, reaction.kind}
        ),
        None,
    )


def take_back(
    context: CommandContext, on: ReactedMessage, wanted: RequestedEmoji
) -> Decision[None]:
    """Remove the actor's own reaction.

    Raise NoSuchMessage, NoSuchReaction, Conflict, and Refused for unknown emoji.
    """
    _check(context, on)
    if wanted.name is None and wanted.code is None:
        raise Refused("An emoji name or code is required.")
    reactions = [reaction for reaction in on.reactions if reaction.user_id == context.actor.id]
    reaction = _own(context, reactions, wanted)
    if reaction is None:
        raise NoSuchReaction
    change = ReactionRemoved(reaction=reaction, place=place_of(on.message), holders=on.holders)
    return Decision(None, (change,))


def _own(
    context: CommandContext, reactions: Sequence[Reaction], wanted: RequestedEmoji
) -> Reaction | None:
    """Return the actor's reaction that matches the request, by a current name or the name that the
    reaction has."""
    of_kind = [reaction for reaction in reactions if wanted.kind in {None, reaction.kind}]
    if wanted.code is not None:
        return next((reaction for reaction in of_kind if reaction.code == wanted.code), None)
    named = next((reaction for reaction in of_kind if reaction.name == wanted.name), None)
    if named is not None:
        return named
    result = emoji.find_emoji(context.state, wanted.name or "", kind=wanted.kind)
    return next(
        (
            reaction
            for reaction in reactions
            if (reaction.kind, reaction.code) == (result.kind, result.code)
        ),
        None,
    )


def _check(context: CommandContext, on: ReactedMessage) -> None:
    state, actor = context.state, context.actor
    if not channel_access.reads_message(state, actor, on.message):
        raise NoSuchMessage
    touched = (on.message.id, ("reactions", on.message.id, actor.id))
    if state.recent_writes.since(on.seq, touched):
        raise Conflict
