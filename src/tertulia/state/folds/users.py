"""Folds of accounts."""

from tertulia.model import changes
from tertulia.state.folds.registry import Folds, revised
from tertulia.state.organization import State
from tertulia.state.user_visibility import bitmap

FOLDS = Folds()


@FOLDS.of(changes.UserCreated)
def _(state: State, change: changes.UserCreated) -> None:
    state.users.put(change.user)
    state.credentials.put(change.credential)
    state.settings.put(change.settings)
    for group_id in change.group_ids:
        group = state.groups[group_id]
        if not group.is_system:  # Who is in those follows from the role.
            state.groups.put(revised(group, {"members": (*group.members, change.user.id)}))


@FOLDS.of(changes.UserChanged)
def _(state: State, change: changes.UserChanged) -> None:
    state.users.put(revised(state.users[change.user_id], change.values))


@FOLDS.of(changes.UserDeactivated)
def _(state: State, change: changes.UserDeactivated) -> None:
    state.users.put(revised(state.users[change.user_id], {"is_active": False}))


@FOLDS.of(changes.UserReactivated)
def _(state: State, change: changes.UserReactivated) -> None:
    state.users.put(revised(state.users[change.user_id], {"is_active": True}))


@FOLDS.of(changes.UserVisibilityChanged)
def _(state: State, change: changes.UserVisibilityChanged) -> None:
    for one in change.gained:
        # The entry that is being folded is the next one.
        state.contacts.gained(state.seq + 1, one.viewers, bitmap(one.users))


@FOLDS.of(changes.CredentialChanged)
def _(state: State, change: changes.CredentialChanged) -> None:
    state.credentials.put(change.credential)


@FOLDS.of(changes.SettingsChanged)
def _(state: State, change: changes.SettingsChanged) -> None:
    before = state.settings[change.user_id]
    values = dict(change.values)
    if change.by_owner:
        values["edited_by_owner"] = True
    state.settings.put(revised(before, values))
