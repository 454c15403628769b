"""Pinned messages of channels."""

from typing import Final

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.messages import MessagePlace
from tertulia.model.numbers import UnixSeconds

MAX_PINS: Final = 50
"""Per channel."""


class Pin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pinned message in its current topic."""

    message_id: int
    channel_id: int
    topic: str = ""
    """The topic as the message spells it; empty for the general chat."""
    pinned_by: int
    pinned_at: UnixSeconds


class MessagePinned(Change, frozen=True, tag="message_pinned"):
    """A message was pinned. `gone` and `moved_to` are as in `ReactionAdded`."""

    pin: Pin
    gone: bool = False
    moved_to: int | None = None

    @property
    def place(self) -> MessagePlace:
        return MessagePlace(id=self.pin.message_id, channel_id=self.pin.channel_id)


class MessageUnpinned(Change, frozen=True, tag="message_unpinned"):
    """A message was unpinned. `pin` is the removed pin."""

    pin: Pin
    gone: bool = False
    moved_to: int | None = None

    @property
    def place(self) -> MessagePlace:
        return MessagePlace(id=self.pin.message_id, channel_id=self.pin.channel_id)
