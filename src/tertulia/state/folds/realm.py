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


@FOLDS.of(changes.RealmDeactivated)
def _(state: State, change: changes.RealmDeactivated) -> None:
    state.realms.put(revised(state.realm, {"deactivated": True}))


@FOLDS.of(changes.RealmReactivated)
def _(state: State, change: changes.RealmReactivated) -> None:
    state.realms.put(revised(state.realm, {"deactivated": False}))
