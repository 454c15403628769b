"""Announcements between nodes. They aren't stored, and nothing depends on their arrival."""

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


class AnnouncementPiece(Struct, frozen=True, kw_only=True, tag="piece"):
    """A part of an announcement that is too long for one text."""

    whole: str
    """Identifies the announcement on its node."""
    number: int
    """From 0."""
    count: int
    """Pieces that the announcement has."""
    text: str


Announcement = Transient | LimitsCharged | SignedInFrom | AnnouncementPiece
