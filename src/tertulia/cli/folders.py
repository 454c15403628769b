"""`tertulia folders`: in which an organization sorts its channels."""

from operator import attrgetter

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.nouns import Noun, Verbs
from tertulia.domain.channels import folders
from tertulia.model.folders import ChannelFolder
from tertulia.state.organization import State
from tertulia.wire.api.resources.folders import (
    CreateChannelFolder,
    ReorderChannelFolders,
    UpdateChannelFolder,
    create_channel_folder,
    reorder_channel_folders,
    update_channel_folder,
)

app = group("folders", "Manage channel folders: list, create, change, archive, and reorder them.")

_NAMES = {name: name for name in ("name", "description", "is_archived")}


def _shown(_: State, one: ChannelFolder) -> dict[str, Shown]:
    return {"name": one.name, "description": one.description, "is_archived": one.is_archived}


_verbs = Verbs(
    app,
    Noun(
        several="folders",
        one="folder",
        records=folders.in_order,
        shown=_shown,
        columns=tuple(_NAMES),
        names=_NAMES,
    ),
)
_verbs.list()
_verbs.make(
    "create",
    CreateChannelFolder,
    create_channel_folder,
    attrgetter("channel_folder_id"),
    "name=Projects description=",
)
_verbs.change(UpdateChannelFolder, update_channel_folder, "Projects is_archived=true")
_verbs.order(ReorderChannelFolders, reorder_channel_folders, "Projects Teams")
