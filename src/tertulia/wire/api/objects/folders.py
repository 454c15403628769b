"""Channel folders on the wire."""

from msgspec import Struct

from tertulia.model.folders import ChannelFolder


class ChannelFolderObject(Struct, kw_only=True):
    """A channel folder."""

    id: int
    name: str
    description: str
    rendered_description: str
    order: int
    date_created: int | None
    creator_id: int | None
    is_archived: bool


def folder_object(folder: ChannelFolder) -> ChannelFolderObject:
    """The folder, which everybody sees alike."""
    return ChannelFolderObject(
        id=folder.id,
        name=folder.name,
        description=folder.description,
        rendered_description=folder.rendered_description,
        order=folder.order,
        date_created=folder.created_at,
        creator_id=folder.creator_id,
        is_archived=folder.is_archived,
    )
