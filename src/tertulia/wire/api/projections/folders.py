"""Events of channel folders."""

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.folders import ChannelFolderObject, folder_object
from tertulia.wire.api.projection import Projections, to_everybody


class ChannelFolderAddEvent(Event, kw_only=True, tag="channel_folder"):
    """There is a new channel folder."""

    op: str = "add"
    channel_folder: ChannelFolderObject


class FolderData(Struct, kw_only=True):
    """What is new of a channel folder."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    rendered_description: str | UnsetType = UNSET
    is_archived: bool | UnsetType = UNSET


class ChannelFolderUpdateEvent(Event, kw_only=True, tag="channel_folder"):
    """Something of a channel folder is new."""

    op: str = "update"
    channel_folder_id: int
    data: FolderData


class ChannelFolderReorderEvent(Event, kw_only=True, tag="channel_folder"):
    """The channel folders stand in this order, archived ones too."""

    op: str = "reorder"
    order: list[int]


PROJECTIONS: Final[Projections] = (
    to_everybody(
        changes.ChannelFolderCreated,
        lambda _, change: ChannelFolderAddEvent(channel_folder=folder_object(change.folder)),
    ),
    to_everybody(
        changes.ChannelFolderChanged,
        lambda _, change: ChannelFolderUpdateEvent(
            channel_folder_id=change.folder_id, data=FolderData(**change.values)
        ),
    ),
    to_everybody(
        changes.ChannelFoldersReordered,
        lambda _, change: ChannelFolderReorderEvent(order=list(change.order)),
    ),
)
