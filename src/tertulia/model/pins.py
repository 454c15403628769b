"""Pinned messages: what a channel's people keep at hand."""

from typing import Final

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.messages import MessagePlace

MAX_PINS: Final = 50
"""In a channel at the same time, its topics together."""


class Pin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that is pinned, where it is now."""

    message_id: int
    channel_id: int
    topic: str = ""
    """As it is spelled in the message; empty for the general chat."""
    pinned_by: int
    pinned_at: int
    """UNIX seconds."""


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
