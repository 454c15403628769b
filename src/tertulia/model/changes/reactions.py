"""What people add to messages of others, and the organization's emoji."""

from tertulia.model.changes.base import Change
from tertulia.model.messages import MessagePlace, Submessage
from tertulia.model.reactions import CustomEmoji, Reaction


class ReactionAdded(Change, frozen=True, tag="reaction_added"):
    """Somebody reacted to a message.

    `recorded` says that they had no relation to the message before, and have now. `holders` are
    the users who have a record of it although it was not delivered to them.
    """

    reaction: Reaction
    place: MessagePlace
    recorded: bool = False
    holders: tuple[int, ...] = ()


class ReactionRemoved(Change, frozen=True, tag="reaction_removed"):
    """Somebody took a reaction back. The other fields are as in its adding."""

    reaction: Reaction
    place: MessagePlace
    holders: tuple[int, ...] = ()


class SubmessageAdded(Change, frozen=True, tag="submessage_added"):
    """Somebody did something with a message's widget.

    The log keeps no second copy of the content: `gone` says that it has been deleted since.
    """

    submessage: Submessage
    place: MessagePlace
    holders: tuple[int, ...] = ()
    gone: bool = False


class CustomEmojiAdded(Change, frozen=True, tag="custom_emoji_added"):
    """The organization has a new emoji."""

    emoji: CustomEmoji


class CustomEmojiDeactivated(Change, frozen=True, tag="custom_emoji_deactivated"):
    """An emoji is not offered any more."""

    emoji_id: int
