"""Channel folders: listing, adding, changing and arranging them."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from tertulia.domain.channels import folders
from tertulia.domain.channels.folders import FolderEdit
from tertulia.service.caller import Caller
from tertulia.wire.api.objects.folders import ChannelFolderObject, folder_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class CreateChannelFolder(Params, kw_only=True, frozen=True):
    """A folder to add; the description may be empty."""

    name: str
    description: str


class CreatedChannelFolder(Answer, kw_only=True):
    """The new folder's ID."""

    channel_folder_id: int


async def create_channel_folder(call: Caller, params: CreateChannelFolder) -> CreatedChannelFolder:
    """Add a channel folder."""
    await call.prepare(params.description)
    folder = await call.submit(folders.create, params.name, params.description, call.render)
    return CreatedChannelFolder(channel_folder_id=folder.id)


class GetChannelFolders(Params, kw_only=True, frozen=True):
    """Whether to list archived folders too."""

    include_archived: bool = False


class ChannelFolders(Answer, kw_only=True):
    """Channel folders, in their order."""

    channel_folders: list[ChannelFolderObject]


async def get_channel_folders(call: Call, params: GetChannelFolders) -> ChannelFolders:
    """The organization's channel folders."""
    return ChannelFolders(
        channel_folders=[
            folder_object(folder)
            for folder in folders.in_order(call.state)
            if params.include_archived or not folder.is_archived
        ]
    )


class ReorderChannelFolders(Params, kw_only=True, frozen=True):
    """The IDs of all channel folders, archived ones too."""

    order: list[Int]


async def reorder_channel_folders(call: Caller, params: ReorderChannelFolders) -> Answer:
    """Arrange the channel folders."""
    await call.submit(folders.reorder, params.order)
    return Answer()


class UpdateChannelFolder(Params, kw_only=True, frozen=True):
    """New values for a channel folder; what is not sent stays."""

    channel_folder_id: Annotated[Int, Path()]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    is_archived: bool | UnsetType = UNSET


async def update_channel_folder(call: Caller, params: UpdateChannelFolder) -> Answer:
    """Change a channel folder."""
    edit = FolderEdit(
        name=params.name, description=params.description, is_archived=params.is_archived
    )
    await call.prepare(params.description)
    await call.submit(folders.change, params.channel_folder_id, edit, call.render)
    return Answer()
