"""Pinned messages: what a channel's people keep at hand."""

from typing import Final

from msgspec import Struct

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
