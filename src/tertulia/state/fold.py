"""Folding entries of the log into the state. Nothing else writes to the state."""

from typing import Final

from tertulia.model.changes import Entry
from tertulia.state import (
    attachments,
    channels,
    feeds,
    groups,
    messages,
    organization,
    personal,
    pins,
    profiles,
    reactions,
    users,
)
from tertulia.state.folds import Folds
from tertulia.state.state import State

FOLDS: Final = Folds(
    {
        **attachments.FOLDS,
        **channels.FOLDS,
        **messages.FOLDS,
        **feeds.FOLDS,
        **groups.FOLDS,
        **users.FOLDS,
        **organization.FOLDS,
        **personal.FOLDS,
        **pins.FOLDS,
        **profiles.FOLDS,
        **reactions.FOLDS,
        **users.FOLDS,
    }
)
"""The fold of each change."""


def fold(state: State, entry: Entry) -> None:
    """Fold the entry that follows the state's."""
    if entry.seq != state.seq + 1:
        raise ValueError(f"entry {entry.seq} cannot follow {state.seq}")
    state.unread.seq = entry.seq
    FOLDS[type(entry.change)](state, entry)
    state.seq = entry.seq
