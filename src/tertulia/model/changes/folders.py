"""Channel folders."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.folders import ChannelFolder


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
