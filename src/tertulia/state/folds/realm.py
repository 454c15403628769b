"""Folds of the organization itself."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State

FOLDS = Folds()


@FOLDS.of(changes.RealmCreated)
def _(state: State, change: changes.RealmCreated) -> None:
    state.realms.put(change.realm)
    for group in change.groups:
        state.groups.put(group)
    for bot in change.bots:
        state.users.put(bot)


@FOLDS.of(changes.RealmChanged)
def _(state: State, change: changes.RealmChanged) -> None:
    state.realms.put(revised(state.realm, change.values))
