"""Channel folders."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType, convert, field

from tertulia.domain.channels import folders
from tertulia.domain.channels.folders import FolderEdit
from tertulia.model import changes
from tertulia.model.folders import ChannelFolder
from tertulia.service.node import Caller
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_everybody
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class ChannelFolderObject(Struct, kw_only=True):
    """A channel folder."""

    id: int
    name: str
    description: str
    rendered_description: str
    order: int
    created_at: int | None = field(name="date_created")
    creator_id: int | None
    is_archived: bool


def folder_object(folder: ChannelFolder) -> ChannelFolderObject:
    return convert(folder, ChannelFolderObject, from_attributes=True)


class ChannelFolderAddEvent(Event, kw_only=True, tag="channel_folder"):
    """A channel folder was created."""

    op: str = "add"
    channel_folder: ChannelFolderObject


class FolderData(Struct, kw_only=True):
    """The changed properties of a channel folder."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    rendered_description: str | UnsetType = UNSET
    is_archived: bool | UnsetType = UNSET


class ChannelFolderUpdateEvent(Event, kw_only=True, tag="channel_folder"):
    """A channel folder changed."""

    op: str = "update"
    channel_folder_id: int
    data: FolderData


class ChannelFolderReorderEvent(Event, kw_only=True, tag="channel_folder"):
    """The channel folders have a new order. Lists all of them, including archived ones."""

    op: str = "reorder"
    order: list[int]


class CreateChannelFolderResponse(ApiResponse, kw_only=True):
    """The ID of the new folder."""

    channel_folder_id: int


async def create_channel_folder(
    call: Caller, name: str, description: str
) -> CreateChannelFolderResponse:
    """Create a channel folder."""
    await call.prepare(description)
    folder = await call.submit(folders.create, name, description, call.render)
    return CreateChannelFolderResponse(channel_folder_id=folder.id)


class ChannelFoldersResponse(ApiResponse, kw_only=True):
    """Channel folders in their order."""

    channel_folders: list[ChannelFolderObject]


async def get_channel_folders(call: Call, include_archived: bool = False) -> ChannelFoldersResponse:
    """List the organization's channel folders."""
    return ChannelFoldersResponse(
        channel_folders=[
            folder_object(folder)
            for folder in folders.in_order(call.state)
            if include_archived or not folder.is_archived
        ]
    )


async def reorder_channel_folders(
    call: Caller,
    order: Annotated[list[Int], Doc("The IDs of all channel folders, including archived ones.")],
) -> None:
    """Change the order of the channel folders."""
    await call.submit(folders.reorder, order)


async def update_channel_folder(
    call: Caller,
    channel_folder_id: IntPath,
    name: str | UnsetType = UNSET,
    description: str | UnsetType = UNSET,
    is_archived: bool | UnsetType = UNSET,
) -> None:
    """Change, archive, or unarchive a channel folder. Parameters that you don't send stay the
    same."""
    edit = FolderEdit(name=name, description=description, is_archived=is_archived)
    await call.prepare(description)
    await call.submit(folders.change, channel_folder_id, edit, call.render)


def folders_section(context: SectionContext) -> dict[str, Any]:
    """All channel folders in their order, including archived ones. Spectators get those with
    channels that they can see."""
    listed = folders.in_order(context.state)
    if context.viewer is None:
        seen = {channel.folder_id for channel in context.channels.values()}
        listed = [folder for folder in listed if folder.id in seen]
    return {"channel_folders": [folder_object(folder) for folder in listed]}


SECTIONS: Final[Sections] = {("channel_folders",): folders_section}


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
