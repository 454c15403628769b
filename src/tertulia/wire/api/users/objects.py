"""Accounts as JSON objects."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.users import AddressVisibility, Role, User
from tertulia.state.state import State
from tertulia.wire.api.profiles import ProfileValueObject, profile_data
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.http.responses import Fragments, Part, array_items


class UserObject(Struct, kw_only=True):
    """An account, as far as you can see it."""

    user_id: int
    delivery_email: str | None
    email: str
    full_name: str
    date_joined: str
    is_active: bool | UnsetType
    is_owner: bool
    is_admin: bool
    is_guest: bool
    is_bot: bool
    bot_type: int | None
    bot_owner_id: int | None
    role: int
    timezone: str
    avatar_url: str | None
    avatar_version: int
    is_imported_stub: bool = False
    is_deleted: bool | UnsetType = UNSET
    is_system_bot: bool | UnsetType = UNSET
    profile_data: dict[str, ProfileValueObject] | UnsetType = UNSET


def api_email(state: State, user: User, host: str, *, sees_address: bool = True) -> str:
    """Return the address that the API uses for the account: the real one if everyone may see it,
    otherwise a placeholder. For spectators, `sees_address` is false even if everyone may see it."""
    is_open = permissions.address_visibility(state, user) is AddressVisibility.EVERYONE
    if user.is_bot or (is_open and sees_address):
        return user.address
    return stand_in(user, host)


def stand_in(user: User, host: str) -> str:
    """Return the placeholder for a hidden address. It doesn't receive email."""
    return f"user{user.id}@{host}"


def presence_email(state: State, viewer: User, user: User, host: str) -> str:
    """Return the address in the legacy presence format: a placeholder for people that the viewer
    can't see."""
    seen = permissions.sees_user(state, viewer, user)
    return api_email(state, user, host, sees_address=seen)


def avatar_url(user: User, *, gravatar_by_client: bool, sees_address: bool) -> str | None:
    """Return the URL of the picture, or None if the client can compute it from the address."""
    if gravatar_by_client and sees_address and user.avatar_source == "G":
        return None
    return full_avatar_url(user, sees_address=sees_address)


def date_joined(user: User, *, by_day: bool = False) -> str:
    """Return the date in ISO 8601 to the minute, or only the day for spectators."""
    joined = datetime.fromtimestamp(user.joined_at, UTC)
    return joined.date().isoformat() if by_day else joined.isoformat(timespec="minutes")


class UserFormat(NamedTuple):
    """The format of user objects that a client wants."""

    client_gravatar: bool = False
    """Leave out the URL of a Gravatar that the client can compute from the address."""
    with_profile: bool = False
    """Include `profile_data` for people."""
    with_activity: bool = True
    """Include `is_active`."""


def user_object(
    state: State, viewer: User | None, user: User, host: str, form: UserFormat
) -> UserObject:
    """Return the account as the viewer (None: a spectator) sees it."""
    sees_address = permissions.sees_address(state, viewer, user)
    return shared_user_object(
        state, user, host, form, sees_address=sees_address, by_day=viewer is None
    )


def shared_user_object(
    state: State,
    user: User,
    host: str,
    form: UserFormat,
    *,
    sees_address: bool,
    by_day: bool = False,
) -> UserObject:
    """Return the account as seen by everyone with or without access to its address. `by_day` is for
    spectators."""
    return UserObject(
        user_id=user.id,
        delivery_email=user.address if sees_address else None,
        email=api_email(state, user, host, sees_address=sees_address),
        full_name=user.full_name,
        date_joined=date_joined(user, by_day=by_day),
        is_active=user.is_active if form.with_activity else UNSET,
        is_owner=user.is_owner,
        is_admin=user.is_administrator,
        is_guest=user.is_guest,
        is_bot=user.is_bot,
        bot_type=user.bot.kind.value if user.bot else None,
        bot_owner_id=user.bot.owner_id if user.bot else None,
        role=user.role.value,
        timezone=user.timezone,
        avatar_url=avatar_url(
            user, gravatar_by_client=form.client_gravatar, sees_address=sees_address
        ),
        avatar_version=user.avatar_version,
        is_imported_stub=user.is_placeholder,
        is_deleted=True if user.is_deleted else UNSET,
        is_system_bot=True if user.is_system_bot else UNSET,
        profile_data=_profile(state, user, shown=not by_day) if form.with_profile else UNSET,
    )


def _profile(state: State, user: User, *, shown: bool) -> dict[str, ProfileValueObject] | UnsetType:
    """Return the profile; empty for spectators. Bots don't have one."""
    if user.is_bot:
        return UNSET
    return profile_data(state, user.id) if shown else {}


UNKNOWN_NAME: Final = "Unknown user"
"""The name of a placeholder for an account that the viewer can't see."""
UNKNOWN_AVATAR: Final = "/static/person.svg"
"""The picture of a placeholder."""


def unknown_user(user: User, host: str, *, joined_at: int) -> UserObject:
    """Return a placeholder for an account that the viewer can't see, for clients that need one. It
    reveals only that the ID exists. `joined_at` is the same for all."""
    return UserObject(
        user_id=user.id,
        delivery_email=None,
        email=stand_in(user, host),
        full_name=UNKNOWN_NAME,
        date_joined=datetime.fromtimestamp(joined_at, UTC).strftime("%Y-%m-%dT%H:%M+00:00"),
        is_active=UNSET,
        is_owner=False,
        is_admin=False,
        is_guest=False,
        is_bot=False,
        bot_type=None,
        bot_owner_id=None,
        role=Role.MEMBER.value,
        timezone="",
        avatar_url=UNKNOWN_AVATAR,
        avatar_version=1,
        profile_data={},
    )


class AccountVisibility(Enum):
    """How much of an account a viewer sees."""

    USUAL = "as much as everyone with the viewer's role"
    OWN = "the viewer's own account, whose address others with that role can't see"
    UNKNOWN = "only that it exists"


def active(user: User) -> bool:
    return user.is_active and not user.is_system_bot


def deactivated(user: User) -> bool:
    return not user.is_active and not user.is_system_bot


def system_bot(user: User) -> bool:
    return user.is_system_bot


def everybody(user: User) -> bool:
    return not user.is_system_bot


def by_visibility(state: State, viewer: User | None) -> list[ShardRange[AccountVisibility]]:
    """The parts of an account that a viewer sees."""
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


def encoded_users(
    fragments: Fragments,
    state: State,
    viewer: User | None,
    ranges: Sequence[ShardRange[AccountVisibility]],
    which: Callable[[User], bool],
    form: UserFormat,
    host: str,
    *,
    with_stand_ins: bool = False,
) -> Iterator[Part]:
    """Return the accounts for which `which` is true, as parts for `json_array`. Accounts that the
    viewer can't see are left out or, `with_stand_ins`, all of them are replaced by placeholders."""
    role = None if viewer is None else permissions.role_of(state, viewer)
    joined_at = state.realm.created_at

    def selected(user_ids: Iterable[int]) -> Iterator[User]:
        return filter(which, (state.users[user_id] for user_id in user_ids))

    def usual(user_ids: Iterable[int]) -> bytes:
        return array_items(
            shared_user_object(
                state,
                user,
                host,
                form,
                sees_address=permissions.shows_address(state, user, role),
                by_day=role is None,
            )
            for user in selected(user_ids)
        )

    def unknown(user_ids: Iterable[int]) -> bytes:
        return array_items(
            unknown_user(user, host, joined_at=joined_at)
            for user in filter(everybody, map(state.users.__getitem__, user_ids))
        )

    for item in ranges:
        if item.kind is AccountVisibility.USUAL:
            key: Hashable = (which, role, form, item.first, item.size)
            yield fragments.get(key, item.version, partial(usual, item.ids))
        elif item.kind is AccountVisibility.OWN:
            yield array_items(
                user_object(state, viewer, user, host, form) for user in selected(item.ids)
            )
        elif with_stand_ins:
            key = (which, AccountVisibility.UNKNOWN, item.first, item.size)
            yield fragments.get(key, (item.version, joined_at), partial(unknown, item.ids))
