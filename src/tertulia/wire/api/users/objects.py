"""Accounts on the wire."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.model.users import AddressVisibility, Role, User
from tertulia.state.state import State
from tertulia.wire.api.profiles import ProfileValueObject, profile_data
from tertulia.wire.api.shard_ranges import ShardRange, shard_ranges
from tertulia.wire.http.fragments import Fragments, Part, array_items

AVATARS_PATH: Final = "/user_avatars/1"
"""Where uploaded pictures are: below the organization's ID."""
DRAWN_PATH: Final = "/user_avatars/1/drawn"
"""Where pictures are of accounts that have uploaded none."""


class UserObject(Struct, kw_only=True):
    """An account, as one viewer may see it."""

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
    """The address by which the interface knows the account: the real one where everybody may see
    it, otherwise one that works nowhere else. A spectator is not one of everybody: for them,
    `sees_address` is false all the same."""
    is_open = permissions.address_visibility(state, user) is AddressVisibility.EVERYONE
    if user.is_bot or (is_open and sees_address):
        return user.address
    return stand_in(user, host)


def stand_in(user: User, host: str) -> str:
    """The address that stands for one that is not shown. It takes no mail."""
    return f"user{user.id}@{host}"


def presence_key(state: State, viewer: User, user: User, host: str) -> str:
    """By which address presence of old is told: never a real one of somebody whom the viewer does
    not see."""
    seen = permissions.sees_user(state, viewer, user)
    return api_email(state, user, host, sees_address=seen)


def avatar_url(user: User, *, gravatar_by_client: bool, sees_address: bool) -> str | None:
    """Where the picture is. None where the client can compute it from the address."""
    if gravatar_by_client and sees_address and user.avatar_source == "G":
        return None
    return avatar_address(user, sees_address=sees_address)


def avatar_address(user: User, *, sees_address: bool, medium: bool = False) -> str:
    """Where the picture is, in its usual size or in the `medium` one of 500 pixels.

    The third party's default is named by a digest of the address, by which a guess at that can be
    tried: those who do not see the address get the picture that is drawn here.
    """
    version = f"version={user.avatar_version}"
    end = f"{'-medium' if medium else ''}.png?{version}"
    match user.avatar_source:
        case "U":
            return f"{AVATARS_PATH}/{user.avatar_file}{end}"
        case "G" if sees_address:
            digest = hashlib.sha256(user.address.strip().lower().encode()).hexdigest()
            size = "&s=500" if medium else ""
            return f"https://secure.gravatar.com/avatar/{digest}?d=identicon{size}&{version}"
        case _:
            return drawn_address(user, end)


def drawn_address(user: User, end: str = ".png") -> str:
    """Where the picture is that is drawn for the account, whether it has another or not."""
    letters = initials(user.full_name)
    return f"{DRAWN_PATH}/{user.id}{letters and '-'}{letters}{end}"


def initials(full_name: str) -> str:
    """The first letters of the first name and the last, of A to Z; empty where they are others."""
    words = full_name.split()
    ends = [words[0], words[-1]] if len(words) > 1 else words
    letters = "".join(unicodedata.normalize("NFKD", word)[0].upper() for word in ends)
    return letters if re.fullmatch(r"[A-Z0-9]{1,2}", letters) else ""


def date_joined(user: User, *, by_day: bool = False) -> str:
    """ISO 8601 to the minute, or only the day for those who are not signed in."""
    moment = datetime.fromtimestamp(user.joined_at, UTC)
    return moment.date().isoformat() if by_day else moment.isoformat(timespec="minutes")


def user_object(
    state: State,
    viewer: User | None,
    user: User,
    host: str,
    *,
    client_gravatar: bool = False,
    with_profile: bool = False,
    with_activity: bool = True,
) -> UserObject:
    """The account as the viewer (None: a spectator) may see it.

    `with_profile` adds `profile_data` for people; without `with_activity`, `is_active` is left to
    the list in which the object stands.
    """
    return user_shown(
        state,
        user,
        host,
        sees_address=permissions.sees_address(state, viewer, user),
        client_gravatar=client_gravatar,
        with_profile=with_profile,
        with_activity=with_activity,
        by_day=viewer is None,
    )


def user_shown(
    state: State,
    user: User,
    host: str,
    *,
    sees_address: bool,
    client_gravatar: bool = False,
    with_profile: bool = False,
    with_activity: bool = True,
    by_day: bool = False,
) -> UserObject:
    """The same for all viewers of one kind: those who see the address, or those who do not."""
    return UserObject(
        user_id=user.id,
        delivery_email=user.address if sees_address else None,
        email=api_email(state, user, host, sees_address=sees_address),
        full_name=user.full_name,
        date_joined=date_joined(user, by_day=by_day),
        is_active=user.is_active if with_activity else UNSET,
        is_owner=user.is_owner,
        is_admin=user.is_administrator,
        is_guest=user.is_guest,
        is_bot=user.is_bot,
        bot_type=user.bot.kind.value if user.bot else None,
        bot_owner_id=user.bot.owner_id if user.bot else None,
        role=user.role.value,
        timezone=user.timezone,
        avatar_url=avatar_url(user, gravatar_by_client=client_gravatar, sees_address=sees_address),
        avatar_version=user.avatar_version,
        is_deleted=True if user.is_deleted else UNSET,
        is_system_bot=True if user.is_system_bot else UNSET,
        profile_data=_profile(state, user, shown=not by_day) if with_profile else UNSET,
    )


def _profile(state: State, user: User, *, shown: bool) -> dict[str, ProfileValueObject] | UnsetType:
    """What the profile has; nothing of it for spectators. Bots have none."""
    if user.is_bot:
        return UNSET
    return profile_data(state, user.id) if shown else {}


UNKNOWN_NAME: Final = "Unknown user"
"""What an account is called of which the viewer may know nothing."""
UNKNOWN_AVATAR: Final = "/static/person.svg"
"""The picture of an account of which the viewer may know nothing."""


def unknown_user(user: User, host: str, *, joined_at: int) -> UserObject:
    """What stands for an account that the viewer may not know of, for clients that cannot do
    without one. It says nothing but that the ID is taken. `joined_at` is the same for all."""
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
