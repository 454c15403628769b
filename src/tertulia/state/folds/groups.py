"""Folds of user groups."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.UserGroupCreated)
def _(state: State, change: changes.UserGroupCreated) -> None:
    state.groups.put(change.group)
