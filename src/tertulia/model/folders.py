"""Folders, in which an organization sorts its channels."""

from msgspec import Struct


class ChannelFolder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named folder of channels. Everybody sees all of them."""

    id: int
    name: str
    """Unique without regard to case among the folders that are not archived."""
    description: str = ""
    rendered_description: str = ""
    order: int
    """Its place among all folders, beginning with 0."""
    created_at: int | None = None
    """UNIX seconds."""
    creator_id: int | None = None
    is_archived: bool = False
