"""Folders, in which an organization sorts its channels."""

from typing import Any

from msgspec import Struct

from tertulia.model.change import Change


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


class ChannelFolderCreated(Change, frozen=True, tag="channel_folder_created"):
    """A folder was created."""

    folder: ChannelFolder


class ChannelFolderChanged(Change, frozen=True, tag="channel_folder_changed"):
    """Fields of a folder (`name`, `description`, `rendered_description`, `is_archived`) have new
    values."""

    folder_id: int
    values: dict[str, Any]


class ChannelFoldersReordered(Change, frozen=True, tag="channel_folders_reordered"):
    """The folders have a new order: the IDs of all of them."""

    order: tuple[int, ...]
