"""Reactions, submessages, and custom emoji."""

from tertulia.model.changes.base import Change
from tertulia.model.messages import MessagePlace, Submessage
from tertulia.model.reactions import CustomEmoji, Reaction


class ReactionAdded(Change, frozen=True, tag="reaction_added"):
    """Somebody reacted to a message.

    `recorded` means that they had no record of the message before, and have one now. `holders` are
    the users with a record of it although it was not delivered to them.
    """

    reaction: Reaction
    place: MessagePlace
    recorded: bool = False
    holders: tuple[int, ...] = ()


class ReactionRemoved(Change, frozen=True, tag="reaction_removed"):
    """Somebody removed a reaction of theirs. The other fields are as in `ReactionAdded`."""

    reaction: Reaction
    place: MessagePlace
    holders: tuple[int, ...] = ()


class SubmessageAdded(Change, frozen=True, tag="submessage_added"):
    """Somebody used a message's widget.

    The log has no copy of the content: `gone`, of an entry that is read from the database, means
    that the message was deleted since.
    """

    submessage: Submessage
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False


class CustomEmojiAdded(Change, frozen=True, tag="custom_emoji_added"):
    """The organization has a new emoji."""

    emoji: CustomEmoji


class CustomEmojiDeactivated(Change, frozen=True, tag="custom_emoji_deactivated"):
    """A custom emoji was deactivated."""

    emoji_id: int
