"""Folds of channel folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tertulia.model import changes
from tertulia.state.folds import Folds, revised

if TYPE_CHECKING:
    from tertulia.state.state import State

FOLDS = Folds()


@FOLDS.of(changes.ChannelFolderCreated)
def _(state: State, change: changes.ChannelFolderCreated) -> None:
    state.folders.put(change.folder)


@FOLDS.of(changes.ChannelFolderChanged)
def _(state: State, change: changes.ChannelFolderChanged) -> None:
    state.folders.put(revised(state.folders[change.folder_id], change.values))


@FOLDS.of(changes.ChannelFoldersReordered)
def _(state: State, change: changes.ChannelFoldersReordered) -> None:
    for place, folder_id in enumerate(change.order):
        state.folders.put(msgspec.structs.replace(state.folders[folder_id], order=place))
