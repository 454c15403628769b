"""Pinned messages."""

from tertulia.model.changes.base import Change
from tertulia.model.messages import MessagePlace
from tertulia.model.pins import Pin


class MessagePinned(Change, frozen=True, tag="message_pinned"):
    """A message was pinned in its channel. `gone` and `moved_to` are as in `ReactionAdded`."""

    pin: Pin
    gone: bool = False
    moved_to: int | None = None

    @property
    def place(self) -> MessagePlace:
        """Of the message."""
        return MessagePlace(id=self.pin.message_id, channel_id=self.pin.channel_id)


class MessageUnpinned(Change, frozen=True, tag="message_unpinned"):
    """A message is not pinned any more. `pin` is as it was; the rest is as in `MessagePinned`."""

    pin: Pin
    gone: bool = False
    moved_to: int | None = None

    @property
    def place(self) -> MessagePlace:
        """Of the message."""
        return MessagePlace(id=self.pin.message_id, channel_id=self.pin.channel_id)
