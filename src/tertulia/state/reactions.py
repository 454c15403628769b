"""Reactions, submessages, and custom emoji: table and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.model import changes
from tertulia.model.messages import Flag
from tertulia.model.nouns import Noun
from tertulia.model.numbers import Counter
from tertulia.model.reactions import CustomEmoji, Reaction
from tertulia.state.folds import FOLDS
from tertulia.state.tables import Grouped, Table, Unique

if TYPE_CHECKING:
    from tertulia.state.state import State


class CustomEmojiTable(Table[CustomEmoji]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_name = Unique(self, lambda emoji: None if emoji.deactivated else emoji.name)
        """Active emoji by name."""
        self.of_author = Grouped(self, lambda emoji: emoji.author_id)


def _touch(state: State, reaction: Reaction) -> None:
    # The entry that is being folded is the next one.
    of_message = ("reactions", reaction.message_id)
    state.recent_writes.note([of_message, (*of_message, reaction.user_id)], state.seq + 1)


@FOLDS.of(changes.ReactionAdded)
def _(state: State, change: changes.ReactionAdded) -> None:
    reaction = change.reaction
    _touch(state, reaction)
    if change.recorded:
        recorded = (reaction.message_id,)
        state.unread.flag((reaction.user_id,), recorded, Flag.RECORD, added=True)
        state.unread.mark((reaction.user_id,), recorded, read=True)


@FOLDS.of(changes.ReactionRemoved)
def _(state: State, change: changes.ReactionRemoved) -> None:
    _touch(state, change.reaction)


@FOLDS.of(changes.SubmessageAdded)
def _(state: State, change: changes.SubmessageAdded) -> None:
    part = change.submessage
    state.counters.put(Counter(name="submessages", last=part.id))
    of_message = ("submessages", part.message_id)
    state.recent_writes.note([of_message, (*of_message, part.sender_id)], state.seq + 1)


FOLDS.puts(changes.CustomEmojiAdded, "custom_emoji", "emoji")
FOLDS.revises(
    changes.CustomEmojiDeactivated, "custom_emoji", "emoji_id", lambda _: {"deactivated": True}
)
