"""Channel folders."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.folders import ChannelFolder


class ChannelFolderCreated(Change, frozen=True, tag="channel_folder_created"):
    """A folder exists."""

    folder: ChannelFolder


class ChannelFolderChanged(Change, frozen=True, tag="channel_folder_changed"):
    """The named fields of a folder (`name`, `description`, `rendered_description`,
    `is_archived`) are new."""

    folder_id: int
    values: dict[str, Any]


class ChannelFoldersReordered(Change, frozen=True, tag="channel_folders_reordered"):
    """The folders stand in this order: the IDs of all of them."""

    order: tuple[int, ...]
