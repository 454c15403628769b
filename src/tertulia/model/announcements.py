"""What nodes announce to each other: it is not stored, and nothing depends on its arriving."""

from msgspec import Struct

from tertulia.model.transients import Transient


class LimitsCharged(Struct, frozen=True, kw_only=True, tag="limits_charged"):
    """What was used up of limits at one node."""

    attempts: dict[str, list[tuple[int | str, int]]]
    """By limit: who, as a user ID or a mark that only the nodes can make, and how many attempts
    more they have made; fewer, where some were forgiven."""


class SignedInFrom(Struct, frozen=True, kw_only=True, tag="signed_in_from"):
    """An account was signed in to from a place."""

    mark: str
    """What stands for both."""


class AnnouncementPiece(Struct, frozen=True, kw_only=True, tag="piece"):
    """A part of an announcement that is too long to be sent in one text."""

    whole: str
    """Identifies the announcement among those of the node."""
    number: int
    """From 0."""
    count: int
    """Pieces that the announcement has."""
    text: str


Announcement = Transient | LimitsCharged | SignedInFrom | AnnouncementPiece
