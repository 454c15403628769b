"""Lists of accounts, made of fragments that viewers of one kind share."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import NamedTuple

from tertulia.domain import permissions
from tertulia.model.users import Role, User
from tertulia.state.organization import State
from tertulia.wire.api.objects.users import unknown_user, user_object, user_shown
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.http.fragments import Fragments, Part, array_items


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
    """The server's own accounts."""
    return user.is_system_bot


def everybody(user: User) -> bool:
    """All but the server's own accounts."""
    return not user.is_system_bot


def by_sight(state: State, viewer: User | None) -> list[ShardRange[Sight]]:
    """All accounts, by what the viewer sees of them."""
    usual = Sight.USUAL
    others: dict[int, Sight] = {}
    if viewer is not None:
        if not permissions.sees_everybody(state, viewer):
            usual = Sight.UNKNOWN
            others = dict.fromkeys(permissions.acquaintances(state, viewer), Sight.USUAL)
        if not permissions.shows_address(state, viewer, permissions.role_of(state, viewer)):
            others[viewer.id] = Sight.OWN
    return shard_ranges(state.user_shards, usual, others)


def people(
    fragments: Fragments,
    state: State,
    viewer: User | None,
    found: Sequence[ShardRange[Sight]],
    which: Callable[[User], bool],
    look: Look,
    host: str,
    *,
    unknown_too: bool = False,
) -> Iterator[Part]:
    """A list of those accounts that are `which`, for `json_array`. With `unknown_too`, accounts of
    which the viewer does not know have a stand-in; otherwise they are left out."""

    def usual(user_ids: Iterable[int]) -> bytes:
        return array_items(
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
            for user in chosen(user_ids)
        )

    def own(user_ids: Iterable[int]) -> bytes:
        return array_items(
            user_object(
                state,
                viewer,
                user,
                host,
                client_gravatar=look.client_gravatar,
                with_profile=look.with_profile,
                with_activity=look.with_activity,
            )
            for user in chosen(user_ids)
        )

    def unknown(user_ids: Iterable[int]) -> bytes:
        return array_items(
            unknown_user(user, host, joined_at=joined_at) for user in chosen(user_ids)
        )

    def chosen(user_ids: Iterable[int]) -> Iterator[User]:
        return filter(which, (state.users[user_id] for user_id in user_ids))

    joined_at = state.realm.created_at
    for one in found:
        if one.kind is Sight.USUAL:
            key: Hashable = (which, look, one.first, one.size)
            yield fragments.get(key, one.version, partial(usual, one.ids))
        elif one.kind is Sight.OWN:
            yield own(one.ids)
        elif unknown_too:
            key = (which, Sight.UNKNOWN, one.first, one.size)
            yield fragments.get(key, (one.version, joined_at), partial(unknown, one.ids))
