"""Channel folders."""

from typing import Any

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class ChannelFolder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder of channels, which everyone sees."""

    id: int
    name: str
    """Unique among active folders, ignoring case."""
    description: str = ""
    rendered_description: str = ""
    order: int
    """Its position among all folders, from 0."""
    created_at: UnixSeconds | None = None
    creator_id: int | None = None
    is_archived: bool = False


class ChannelFolderCreated(Change, frozen=True, tag="channel_folder_created"):
    folder: ChannelFolder


class ChannelFolderChanged(Change, frozen=True, tag="channel_folder_changed"):
    """Fields of a folder (`name`, `description`, `rendered_description`, `is_archived`) have new
    values."""

    folder_id: int
    values: dict[str, Any]


class ChannelFoldersReordered(Change, frozen=True, tag="channel_folders_reordered"):
    """`order` has the IDs of all folders."""

    order: tuple[int, ...]
