"""Messages between nodes. They aren't stored, and nothing depends on their arrival. (Announcements
to people are banners.)"""

from msgspec import Struct

from tertulia.model.transients import Transient


class LimitsCharged(Struct, frozen=True, kw_only=True, tag="limits_charged"):
    """Attempts that one node counted toward rate limits."""

    attempts: dict[str, list[tuple[int | str, int]]]
    """The attempts by limit: the user ID, or a keyed hash, and the number of additional attempts;
    negative if attempts were forgiven."""


class SignedInFrom(Struct, frozen=True, kw_only=True, tag="signed_in_from"):
    """An account signed in from a location."""

    mark: str
    """Identifies the account and the location."""


class PeerMessagePiece(Struct, frozen=True, kw_only=True, tag="piece"):
    """A part of a message that is too long for one text."""

    whole: str
    """Identifies the message on its node."""
    number: int
    """The part's number, from 0."""
    count: int
    """The number of parts."""
    text: str


PeerMessage = Transient | LimitsCharged | SignedInFrom | PeerMessagePiece
