"""Messages between nodes, which aren't stored, and whose arrival nothing depends on.
(Announcements to people are banners.)"""

from msgspec import Struct

from tertulia.model.transients import Transient


class LimitsCharged(Struct, frozen=True, kw_only=True, tag="limits_charged"):
    """Attempts that one node counted toward rate limits."""

    attempts: dict[str, list[tuple[int | str, int]]]
    """By limit: the user ID, or a keyed hash, and the number of additional attempts; negative if
    some were forgiven."""


class SignedInFrom(Struct, frozen=True, kw_only=True, tag="signed_in_from"):
    """An account signed in from a location."""

    mark: str
    """Identifies both."""


class PeerMessagePiece(Struct, frozen=True, kw_only=True, tag="piece"):
    """A part of a message that is too long for one text."""

    whole: str
    """Identifies the message on its node."""
    number: int
    """From 0."""
    count: int
    """Pieces that the message has."""
    text: str


PeerMessage = Transient | LimitsCharged | SignedInFrom | PeerMessagePiece
