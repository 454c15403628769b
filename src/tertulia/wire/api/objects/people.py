"""Lists of accounts, in fragments that all viewers of one kind have."""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from tertulia.domain import permissions
from tertulia.model.users import Role, User
from tertulia.state.organization import State
from tertulia.wire.api.objects.users import unknown_user, user_object, user_shown
from tertulia.wire.http.fragments import Fragments, Part, Run, listed, runs


class Sight(Enum):
    """What a viewer sees of an account."""

    USUAL = "what all of the viewer's role see of it"
    OWN = "all of it, which others of the role do not see"
    UNKNOWN = "that it is there"


class Look(NamedTuple):
    """How accounts are shown."""

    role: Role | None
    """The viewer's; None for a spectator."""
    client_gravatar: bool
    with_profile: bool = False
    with_activity: bool = True


def active(user: User) -> bool:
    """People and bots."""
    return user.is_active and not user.is_system_bot


def deactivated(user: User) -> bool:
    """People and bots that were."""
    return not user.is_active and not user.is_system_bot


def system_bot(user: User) -> bool:
    """The server's own voices."""
    return user.is_system_bot


def everybody(user: User) -> bool:
    """All but the server's own voices."""
    return not user.is_system_bot


def by_sight(state: State, viewer: User | None, now: float) -> list[Run[Sight]]:
    """All accounts, by what the viewer sees of them."""
    usual = Sight.USUAL
    odd: dict[int, Sight] = {}
    if viewer is not None:
        if not permissions.sees_everybody(state, viewer, now):
            usual = Sight.UNKNOWN
            odd = dict.fromkeys(permissions.acquaintances(state, viewer), Sight.USUAL)
        if not permissions.shows_address(state, viewer, permissions.role_of(state, viewer)):
            odd[viewer.id] = Sight.OWN
    return runs(state.people, usual, odd)


def people(
    fragments: Fragments,
    state: State,
    viewer: User | None,
    found: Sequence[Run[Sight]],
    which: Callable[[User], bool],
    look: Look,
    host: str,
    *,
    unknown_too: bool = False,
) -> Iterator[Part]:
    """A list of those accounts that are `which`, for `array`; with `unknown_too`, what stands for
    those that the viewer does not know of is in its place."""
    for run in found:
        if run.kind is Sight.USUAL:
            yield fragments.get(
                (which, look, run.first, run.size),
                run.version,
                lambda run=run: listed(  # type: ignore[misc]  # the run of this turn
                    user_shown(
                        state,
                        user,
                        host,
                        sees_address=permissions.shows_address(state, user, look.role),
                        client_gravatar=look.client_gravatar,
                        with_profile=look.with_profile,
                        with_activity=look.with_activity,
                        by_day=look.role is None,
                    )
                    for user in _of(state, run, which)
                ),
            )
        elif run.kind is Sight.OWN:
            yield listed(
                user_object(
                    state,
                    viewer,
                    user,
                    host,
                    client_gravatar=look.client_gravatar,
                    with_profile=look.with_profile,
                    with_activity=look.with_activity,
                )
                for user in _of(state, run, which)
            )
        elif unknown_too:
            joined_at = state.realm.created_at
            yield fragments.get(
                (which, Sight.UNKNOWN, run.first, run.size),
                (run.version, joined_at),
                lambda run=run, joined_at=joined_at: listed(  # type: ignore[misc]  # likewise
                    unknown_user(user, host, joined_at=joined_at) for user in _of(state, run, which)
                ),
            )


def _of(state: State, run: Run[Sight], which: Callable[[User], bool]) -> Iterator[User]:
    return filter(which, (state.users[user_id] for user_id in run.ids))
