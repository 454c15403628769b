"""Channel folders, which administrators create and order for everyone."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import names, permissions
from tertulia.domain.messages.bot_messages import Render
from tertulia.model.changes import (
    ChannelFolderChanged,
    ChannelFolderCreated,
    ChannelFoldersReordered,
)
from tertulia.model.errors import Refused
from tertulia.model.folders import ChannelFolder
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State

MAX_FOLDERS = 1000


class FolderEdit(Struct, frozen=True, kw_only=True):
    """New values for a folder. UNSET fields don't change."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    is_archived: bool | UnsetType = UNSET


def in_order(state: State) -> list[ChannelFolder]:
    """Return all folders, including archived ones."""
    return sorted(state.folders, key=lambda folder: folder.order)


def check_open(state: State, folder_id: int | None) -> None:
    """Raise Refused if the folder doesn't exist or is archived."""
    folder = state.folders.get(folder_id)
    if folder_id is not None and (folder is None or folder.is_archived):
        raise Refused("This channel folder doesn't exist.")


def create(
    context: CommandContext, name: str, description: str, render: Render
) -> Decision[ChannelFolder]:
    """Add a folder at the end. Raise Refused for an invalid name or description, or a taken
    name."""
    state = context.state
    permissions.require_administrator(context.state, context.actor)
    if len(state.folders) >= MAX_FOLDERS:
        raise Refused(f"An organization can have at most {MAX_FOLDERS} channel folders.")
    final = names.folder_description(description)
    folder = ChannelFolder(
        id=state.folders.next_id(),
        name=_free_name(state, name),
        description=final,
        rendered_description=render(context, final).html,
        order=len(state.folders),
        created_at=int(context.now),
        creator_id=context.actor.id,
    )
    return Decision(folder, [ChannelFolderCreated(folder=folder)])


def change(
    context: CommandContext, folder_id: int, edit: FolderEdit, render: Render
) -> Decision[None]:
    """Change a folder. Raise Refused as `create`, for an unknown folder, and for archiving one that
    contains active channels."""
    state = context.state
    permissions.require_administrator(context.state, context.actor)
    folder = state.folders.get(folder_id)
    if folder is None:
        raise Refused("This channel folder doesn't exist.")
    values: dict[str, Any] = {}
    if edit.is_archived is not UNSET:
        values["is_archived"] = edit.is_archived
    if edit.name is not UNSET:
        values["name"] = names.folder_name(edit.name)
    if edit.description is not UNSET:
        values["description"] = names.folder_description(edit.description)
        values["rendered_description"] = render(context, values["description"]).html
    after = msgspec.structs.replace(folder, **values)
    if not after.is_archived:
        _check_free(state, after.name, but=folder_id)
    elif not folder.is_archived and any(
        channel.folder_id == folder_id and not channel.is_archived for channel in state.channels
    ):
        raise Refused("This folder still contains channels. Move them out before you archive it.")
    changed = {name: value for name, value in values.items() if getattr(folder, name) != value}
    if not changed:
        return Decision(None)
    return Decision(None, [ChannelFolderChanged(folder_id=folder_id, values=changed)])


def reorder(context: CommandContext, order: Sequence[int]) -> Decision[None]:
    """Set the order of the folders. Raise Refused unless `order` names each folder exactly once,
    including archived ones."""
    state = context.state
    permissions.require_administrator(context.state, context.actor)
    if sorted(order) != sorted(folder.id for folder in state.folders):
        raise Refused("The order must list every channel folder exactly once.")
    if list(order) == [folder.id for folder in in_order(state)]:
        return Decision(None)
    return Decision(None, [ChannelFoldersReordered(order=tuple(order))])


def _free_name(state: State, text: str) -> str:
    name = names.folder_name(text)
    _check_free(state, name)
    return name


def _check_free(state: State, name: str, *, but: int | None = None) -> None:
    if any(
        names.look_alike(folder.name, name) and not folder.is_archived and folder.id != but
        for folder in state.folders
    ):
        raise Refused(f"A channel folder named '{name}' already exists.")
