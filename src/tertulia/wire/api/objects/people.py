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


class AccountVisibility(Enum):
    """How much of an account a viewer sees."""

    USUAL = "as everybody of the viewer's role sees it"
    OWN = "the viewer's own, with an address that the role may not see"
    UNKNOWN = "only that it exists"


class Look(NamedTuple):
    """How accounts are shown."""

    role: Role | None
    """The viewer's; None for a spectator."""
    client_gravatar: bool
    with_profile: bool = False
    with_activity: bool = True


def active(user: User) -> bool:
    """Whether the account is a person or bot that is active."""
    return user.is_active and not user.is_system_bot


def deactivated(user: User) -> bool:
    """Whether the account is a person or bot that was deactivated."""
    return not user.is_active and not user.is_system_bot


def system_bot(user: User) -> bool:
    """Whether the account is one of the server's own."""
    return user.is_system_bot


def everybody(user: User) -> bool:
    """Whether the account is not one of the server's own."""
    return not user.is_system_bot


def by_visibility(state: State, viewer: User | None) -> list[ShardRange[AccountVisibility]]:
    """All accounts, by how much the viewer sees of them."""
    usual = AccountVisibility.USUAL
    others: dict[int, AccountVisibility] = {}
    if viewer is not None:
        if not permissions.sees_everybody(state, viewer):
            usual = AccountVisibility.UNKNOWN
            others = dict.fromkeys(
                permissions.contacts_and_bots(state, viewer), AccountVisibility.USUAL
            )
        if not permissions.shows_address(state, viewer, permissions.role_of(state, viewer)):
            others[viewer.id] = AccountVisibility.OWN
    return shard_ranges(state.user_shards, usual, others)


def people(
    fragments: Fragments,
    state: State,
    viewer: User | None,
    found: Sequence[ShardRange[AccountVisibility]],
    which: Callable[[User], bool],
    look: Look,
    host: str,
    *,
    unknown_too: bool = False,
) -> Iterator[Part]:
    """The accounts for which `which` is true, as parts for `json_array`. Accounts that the viewer
    does not know are left out, or with `unknown_too` have a stand-in."""

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
        if one.kind is AccountVisibility.USUAL:
            key: Hashable = (which, look, one.first, one.size)
            yield fragments.get(key, one.version, partial(usual, one.ids))
        elif one.kind is AccountVisibility.OWN:
            yield own(one.ids)
        elif unknown_too:
            key = (which, AccountVisibility.UNKNOWN, one.first, one.size)
            yield fragments.get(key, (one.version, joined_at), partial(unknown, one.ids))
