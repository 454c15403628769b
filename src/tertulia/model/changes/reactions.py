"""Reactions, submessages, and custom emoji."""

from tertulia.model.changes.base import Change
from tertulia.model.messages import MessagePlace, Submessage
from tertulia.model.reactions import CustomEmoji, Reaction


class ReactionAdded(Change, frozen=True, tag="reaction_added"):
    """Somebody reacted to a message.

    `recorded` means that they had no record of the message before, and have one now. `holders` are
    the users with a record of it although it was not delivered to them. Of an entry that is read
    from the database, `gone` means that the message was deleted since, and `moved_to` is the
    channel that it was moved to since.
    """

    reaction: Reaction
    place: MessagePlace
    recorded: bool = False
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class ReactionRemoved(Change, frozen=True, tag="reaction_removed"):
    """Somebody removed a reaction of theirs. The other fields are as in `ReactionAdded`."""

    reaction: Reaction
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class SubmessageAdded(Change, frozen=True, tag="submessage_added"):
    """Somebody used a message's widget.

    The log has no copy of the content. `gone` and `moved_to` are as in `ReactionAdded`.
    """

    submessage: Submessage
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False
    moved_to: int | None = None


class CustomEmojiAdded(Change, frozen=True, tag="custom_emoji_added"):
    """The organization has a new emoji."""

    emoji: CustomEmoji


class CustomEmojiDeactivated(Change, frozen=True, tag="custom_emoji_deactivated"):
    """A custom emoji was deactivated."""

    emoji_id: int
