"""Folds of event queues."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.EventIdsUsedUp)
def _(state: State, change: changes.EventIdsUsedUp) -> None:
    """The entry alone is what it is about."""
