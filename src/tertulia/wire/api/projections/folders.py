"""Events of channel folders."""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tertulia.model import changes
from tertulia.wire.api.events import Event, ForAll, ProjectionContext
from tertulia.wire.api.objects.folders import ChannelFolderObject, folder_object


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


class ChannelFolderCreatedProjection(ForAll[changes.ChannelFolderCreated]):
    """A new folder, to everybody."""

    of = changes.ChannelFolderCreated

    def events(
        self, context: ProjectionContext, change: changes.ChannelFolderCreated, view: Any
    ) -> Iterable[Event]:
        yield ChannelFolderAddEvent(channel_folder=folder_object(change.folder))


class ChannelFolderChangedProjection(ForAll[changes.ChannelFolderChanged]):
    """New values, to everybody."""

    of = changes.ChannelFolderChanged

    def events(
        self, context: ProjectionContext, change: changes.ChannelFolderChanged, view: Any
    ) -> Iterable[Event]:
        yield ChannelFolderUpdateEvent(
            channel_folder_id=change.folder_id, data=FolderData(**change.values)
        )


class ChannelFoldersReorderedProjection(ForAll[changes.ChannelFoldersReordered]):
    """A new order, to everybody."""

    of = changes.ChannelFoldersReordered

    def events(
        self, context: ProjectionContext, change: changes.ChannelFoldersReordered, view: Any
    ) -> Iterable[Event]:
        yield ChannelFolderReorderEvent(order=list(change.order))
