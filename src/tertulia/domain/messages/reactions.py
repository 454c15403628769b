"""Reacting to messages."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.organization import emoji
from tertulia.model.changes import ReactionAdded, ReactionRemoved
from tertulia.model.errors import Conflict, NoSuchMessage, NoSuchReaction, ReactionExists, Refused
from tertulia.model.messages import Flag, Message, place_of
from tertulia.model.reactions import Emoji, EmojiKind, Reaction
from tertulia.state.moment import Decision, Moment

MAX_EMOJI: Final = 100
"""Different emoji on one message."""
MAX_OF_PERSON: Final = 50
"""Reactions of one account to one message."""
MAX_UNDER_WAY: Final = 50
"""Reactions to one message that are decided at the same moment: so close to `MAX_EMOJI`, one is
decided after the other."""


class ReactedMessage(Struct, frozen=True, kw_only=True):
    """A message as it was at the log's entry `seq`: the actor's flags on it, its reactions, and
    who has a record of it although it was not delivered to them."""

    seq: int
    message: Message
    flags: Flag
    reactions: Sequence[Reaction]
    holders: tuple[int, ...]


class RequestedEmoji(Struct, frozen=True, kw_only=True):
    """The emoji of a request. `neutral`: the request names its kind by the neutral word."""

    name: str | None = None
    code: str | None = None
    kind: EmojiKind | None = None
    neutral: bool = False


def react(moment: Moment, on: ReactedMessage, wanted: RequestedEmoji) -> Decision[None]:
    """Add a reaction.

    Raises NoSuchMessage, ReactionExists, Conflict, and Refused for what is no emoji. With an
    emoji that the message has already, its name is that of the first one who used it, and it may
    be deactivated by now.
    """
    state, actor = moment.state, moment.actor
    _check(moment, on)
    present = _like(moment, on, wanted)
    if present is not None:
        chosen = Emoji(kind=present.kind, code=present.code, name=present.name)
    else:
        chosen = emoji.chosen(state, wanted.name or "", wanted.code, wanted.kind)
        _check_emoji(moment, on)
    own = [one for one in on.reactions if one.user_id == actor.id]
    if any((one.kind, one.code) == (chosen.kind, chosen.code) for one in own):
        raise ReactionExists
    if len(own) >= MAX_OF_PERSON:
        raise Refused(
            f"You can add at most {MAX_OF_PERSON} reactions to a message. Remove one first."
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


def _check_emoji(moment: Moment, on: ReactedMessage) -> None:
    """Refuse an emoji that the message doesn't have yet, where it has too many."""
    present = len({(one.kind, one.code) for one in on.reactions})
    if present >= MAX_EMOJI:
        raise Refused(
            f"A message can have at most {MAX_EMOJI} different emoji. Use one that it already has."
        )
    if present + MAX_UNDER_WAY >= MAX_EMOJI and moment.state.recent_writes.since(
        on.seq, [("reactions", on.message.id)]
    ):
        raise Conflict


def _like(moment: Moment, on: ReactedMessage, wanted: RequestedEmoji) -> Reaction | None:
    """A reaction with the same emoji, whoever's it is."""
    code, kind = wanted.code, wanted.kind
    if code is None:
        try:
            found = emoji.chosen(moment.state, wanted.name or "", kind=kind)
        except Refused:
            return None
        code, kind = found.code, found.kind
    return next(
        (one for one in on.reactions if one.code == code and kind in {None, one.kind}), None
    )


def take_back(moment: Moment, on: ReactedMessage, wanted: RequestedEmoji) -> Decision[None]:
    """Remove the actor's own reaction.

    Raises NoSuchMessage, NoSuchReaction, Conflict, and Refused for what is no emoji.
    """
    _check(moment, on)
    if wanted.name is None and wanted.code is None:
        raise Refused("An emoji name or code is required.")
    own = [one for one in on.reactions if one.user_id == moment.actor.id]
    found = _own(moment, own, wanted)
    if found is None:
        raise NoSuchReaction
    change = ReactionRemoved(reaction=found, place=place_of(on.message), holders=on.holders)
    return Decision(None, (change,))


def _own(moment: Moment, own: Sequence[Reaction], wanted: RequestedEmoji) -> Reaction | None:
    """Which of the actor's reactions is meant. A name that was right when they reacted still is."""
    of_kind = [one for one in own if wanted.kind in {None, one.kind}]
    if wanted.code is not None:
        return next((one for one in of_kind if one.code == wanted.code), None)
    named = next((one for one in of_kind if one.name == wanted.name), None)
    if named is not None:
        return named
    found = emoji.chosen(moment.state, wanted.name or "", kind=wanted.kind)
    return next((one for one in own if (one.kind, one.code) == (found.kind, found.code)), None)


def _check(moment: Moment, on: ReactedMessage) -> None:
    state, actor = moment.state, moment.actor
    if not permissions.reads_message(state, actor, on.message):
        raise NoSuchMessage
    touched = (on.message.id, ("reactions", on.message.id, actor.id))
    if state.recent_writes.since(on.seq, touched):
        raise Conflict
