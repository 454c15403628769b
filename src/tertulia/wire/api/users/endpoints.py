"""Accounts: reading, creating, changing, deactivating."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import users
from tertulia.domain.messages.deleting import DeletionScope
from tertulia.model.errors import NotPermitted, Refused
from tertulia.model.users import Role, User
from tertulia.service.leaving import leave
from tertulia.service.passwords import good_password
from tertulia.wire.api.profiles import ProfileEntry, ProfileValueObject, new_profile, profile_data
from tertulia.wire.api.shard_ranges import ShardRange
from tertulia.wire.api.users import objects as people
from tertulia.wire.api.users.objects import (
    AccountVisibility,
    UserObject,
    api_email,
    avatar_address,
    date_joined,
)
from tertulia.wire.api.users.objects import user_object as shown_to
from tertulia.wire.http import sign_in
from tertulia.wire.http.call import Call
from tertulia.wire.http.fragments import array_items, fragmented, json_array
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse

RoleNumber = Literal[100, 200, 300, 400, 600]

# Reading


class GetUsers(Params, kw_only=True, frozen=True):
    """Which accounts, and how much of them."""

    client_gravatar: Annotated[
        bool, Meta(description="Whether avatar_url may be null where the client can compute it.")
    ] = True
    include_custom_profile_fields: bool = False
    user_ids: Annotated[list[Int] | None, Meta(description="Only these; all by default.")] = None
    after: Annotated[
        Int, Meta(description="Of this server alone: only accounts with greater IDs.")
    ] = 0
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Of this server alone: about so many accounts are looked through, and"
            " `next_after` is what to ask for `after` next; null where there are no more."
        ),
    ] = None


class Users(ApiResponse, kw_only=True):
    """Accounts in ascending order of ID."""

    members: list[UserObject]
    next_after: int | UnsetType | None = UNSET
    """Where a `limit` was asked for."""


class _Part(NamedTuple):
    """Some of all accounts."""

    begun: Sequence[int]
    """The IDs that are left of a range in whose middle it begins."""
    ranges: list[ShardRange[AccountVisibility]]
    """What comes then."""
    further: int | None
    """The last ID of it, where there are more."""


def _part(found: Sequence[ShardRange[AccountVisibility]], after: int, limit: int | None) -> _Part:
    """The accounts with greater IDs, until there are so many."""
    begun: Sequence[int] = ()
    ranges: list[ShardRange[AccountVisibility]] = []
    count, last = 0, after
    for one in found:
        if one.ids[-1] <= after:
            continue
        if limit is not None and count >= limit:
            return _Part(begun, ranges, last)
        if one.ids[0] > after:
            ranges.append(one)
            count += len(one.ids)
        else:
            begun = one.ids[bisect_right(one.ids, after) :]
            count += len(begun)
        last = one.ids[-1]
    return _Part(begun, ranges, None)


def _everybody(call: Call, params: GetUsers) -> Users:
    state, viewer = call.state, None if call.user_id is None else call.user
    host, fragments = call.node.config.address_host, call.node.fragments
    look = people.Look(
        role=None if viewer is None else permissions.role_of(state, viewer),
        client_gravatar=params.client_gravatar,
        with_profile=params.include_custom_profile_fields,
    )
    part = _part(people.by_visibility(state, viewer), params.after, params.limit)
    listed = people.people(fragments, state, viewer, part.ranges, people.everybody, look, host)
    # (Nothing of it is kept: a client may begin anywhere.)
    begun = array_items(_named(call, params, part.begun))
    told = {} if params.limit is None else {"next_after": part.further}
    return fragmented(Users, {"members": json_array([begun, *listed]), **told})


def _named(call: Call, params: GetUsers, user_ids: Iterable[int]) -> list[UserObject]:
    """Those of the accounts that the caller may know of."""
    state, viewer = call.state, None if call.user_id is None else call.user
    return [
        shown_to(
            state,
            viewer,
            user,
            call.node.config.address_host,
            client_gravatar=params.client_gravatar,
            with_profile=params.include_custom_profile_fields,
        )
        for user in (state.users[one] for one in user_ids)
        if not user.is_system_bot and (viewer is None or permissions.sees_user(state, viewer, user))
    ]


async def get_users(call: Call, params: GetUsers) -> Users:
    """The accounts that the caller may know of, people and bots."""
    if params.user_ids is not None and (params.after or params.limit is not None):
        raise Refused("'after' and 'limit' can't be combined with 'user_ids'.")
    if params.user_ids is None:
        return await call.node.fragments.in_turns(lambda: _everybody(call, params))
    known = call.state.users
    wanted = [one for one in sorted(set(params.user_ids)) if one in known]
    return Users(members=_named(call, params, wanted))


class OwnUser(ApiResponse, kw_only=True):
    """One's own account."""

    user_id: int
    email: str
    delivery_email: str
    full_name: str
    date_joined: str
    is_active: bool
    is_owner: bool
    is_admin: bool
    is_guest: bool
    is_bot: bool
    role: int
    timezone: str
    avatar_url: str
    avatar_version: int
    max_message_id: int
    profile_data: dict[str, ProfileValueObject] | UnsetType = UNSET


async def get_own_user(call: Call, params: NoParams) -> OwnUser:
    """The caller's own account."""
    state, user = call.state, call.user
    return OwnUser(
        user_id=user.id,
        email=api_email(state, user, call.node.config.address_host),
        delivery_email=user.address,
        full_name=user.full_name,
        date_joined=date_joined(user),
        is_active=user.is_active,
        is_owner=user.is_owner,
        is_admin=user.is_administrator,
        is_guest=user.is_guest,
        is_bot=user.is_bot,
        role=user.role.value,
        timezone=user.timezone,
        avatar_url=avatar_address(user, sees_address=True),
        avatar_version=user.avatar_version,
        max_message_id=state.last_message_id or -1,
        profile_data=UNSET if user.is_bot else profile_data(state, user.id),
    )


class GetUser(Params, kw_only=True, frozen=True):
    """An account by ID."""

    user_id: Annotated[Int, Path()]
    client_gravatar: bool = True
    include_custom_profile_fields: bool = False


class GetUserByEmail(Params, kw_only=True, frozen=True):
    """An account by address."""

    email: Annotated[
        str,
        Path(),
        Meta(description="The real address, where the caller sees it; or `user7@` and the host."),
    ]
    client_gravatar: bool = True
    include_custom_profile_fields: bool = False


class OneUser(ApiResponse, kw_only=True):
    """An account."""

    user: UserObject


async def get_user(call: Call, params: GetUser) -> OneUser:
    """The account of that ID."""
    return _one(call, params.user_id, params)


async def get_user_by_email(call: Call, params: GetUserByEmail) -> OneUser:
    """The account with that address."""
    return _one(call, _id_of(call, params.email), params)


def _one(call: Call, user_id: int | None, params: GetUser | GetUserByEmail) -> OneUser:
    user = permissions.visible_user(call.state, call.user, user_id)
    return OneUser(
        user=shown_to(
            call.state,
            call.user,
            user,
            call.node.config.address_host,
            client_gravatar=params.client_gravatar,
            with_profile=params.include_custom_profile_fields,
        )
    )


def _id_of(call: Call, email: str) -> int | None:
    found = call.account_with(email)
    return found.id if found else None


# Creating


class CreateUser(Params, kw_only=True, frozen=True):
    """A person to be."""

    email: str
    password: str
    full_name: str


class CreatedUser(ApiResponse, kw_only=True):
    """The new account's ID."""

    user_id: int


async def create_user(call: Call, params: CreateUser) -> CreatedUser:
    """Create a person's account, subscribed to the default channels."""
    call.consider(users.check_new, params.email, params.full_name)
    password = await good_password(call.node, params.password, params.email, params.full_name)
    new = users.NewUser(
        address=params.email,
        full_name=params.full_name,
        credential=await call.node.vault.credential(0, password),
    )
    user: User = await call.submit(users.create_for_another, new)
    return CreatedUser(user_id=user.id)


# Changing


class _Changes(Params, kw_only=True, frozen=True):
    """What is to be new about an account."""

    full_name: str | None = None
    role: RoleNumber | None = None
    new_email: Annotated[str | None, Meta(description="For administrators.")] = None
    profile_data: list[ProfileEntry] | None = None


class UpdateUser(_Changes, kw_only=True, frozen=True):
    """What is to be new about the account of that ID."""

    user_id: Annotated[Int, Path()]


class UpdateUserByEmail(_Changes, kw_only=True, frozen=True):
    """What is to be new about the account with that address."""

    email: Annotated[str, Path()]


async def update_user(call: Call, params: UpdateUser) -> ApiResponse:
    """Change an account, for administrators."""
    return await _update(call, params.user_id, params)


async def update_user_by_email(call: Call, params: UpdateUserByEmail) -> ApiResponse:
    """Change an account named by its address, for administrators."""
    user = permissions.visible_user(call.state, call.user, _id_of(call, params.email))
    return await _update(call, user.id, params)


async def _update(call: Call, user_id: int, params: _Changes) -> ApiResponse:
    call.consider(users.check_managed, user_id)
    if params.new_email is not None or params.role is not None:
        sign_in.require_confirmed(call)
    revision = users.AccountUpdate(
        full_name=params.full_name,
        role=None if params.role is None else Role(params.role),
        address=params.new_email,
        profile=await new_profile(call, params.profile_data) if params.profile_data else None,
        site=call.node.config.mail_site,
    )
    await call.submit(users.change, user_id, revision)
    return ApiResponse()


# Leaving and coming back


class Actions(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What is to be deleted of an account: its profile with its name and address, and what it and
    its bots wrote."""

    delete_profile: bool = False
    delete_public_channel_messages: bool = False
    delete_private_channel_messages: bool = False
    delete_direct_messages: bool = False


class DeactivateUser(Params, kw_only=True, frozen=True):
    """An account to deactivate."""

    user_id: Annotated[Int, Path()]
    actions: Annotated[
        Actions, Meta(description="What to delete. With the profile, the account goes for good.")
    ] = Actions()
    deactivation_notification_comment: Annotated[
        Annotated[str, Meta(max_length=2000)] | None,
        Meta(description="What a mail to the person says beside that. Null sends none."),
    ] = None


class Deactivated(ApiResponse, kw_only=True):
    """What became of it."""

    complete: bool | UnsetType = UNSET
    """Of messages that are to be deleted: whether none is left. Otherwise the same is to be asked
    for again, and the profile stays until then."""


async def deactivate_user(call: Call, params: DeactivateUser) -> Deactivated:
    """Deactivate an account and the bots it owns."""
    if params.user_id not in call.state.users.bots:
        sign_in.require_confirmed(call)
    wanted, comment = params.actions, params.deactivation_notification_comment
    places = DeletionScope(
        open=wanted.delete_public_channel_messages,
        closed=wanted.delete_private_channel_messages,
        direct=wanted.delete_direct_messages,
    )
    complete = await leave(
        call, params.user_id, places, erased=wanted.delete_profile, comment=comment
    )
    return Deactivated(complete=complete if places else UNSET)


async def deactivate_own_user(call: Call, params: NoParams) -> ApiResponse:
    """Deactivate the caller's own account and the bots it owns."""
    _require_person(call)
    sign_in.require_confirmed(call)
    await call.submit(users.deactivate, call.user.id)
    return ApiResponse()


def _require_person(call: Call) -> None:
    if call.user.is_bot:
        raise NotPermitted("Bots can't do this.")


class ReactivateUser(Params, kw_only=True, frozen=True):
    """An account to reactivate."""

    user_id: Annotated[Int, Path()]


async def reactivate_user(call: Call, params: ReactivateUser) -> ApiResponse:
    """Reactivate an account. It gets another API key."""
    await call.submit(users.reactivate, params.user_id, call.node.vault.new_key())
    return ApiResponse()


# Keys


class NewKey(ApiResponse, kw_only=True):
    """The account's API key."""

    api_key: str


async def regenerate_own_key(call: Call, params: NoParams) -> NewKey:
    """Replace the caller's API key. The old one is void at once."""
    _require_person(call)
    sign_in.require_confirmed(call)
    vault, site = call.node.vault, call.node.config.mail_site
    credential = await call.submit(users.replace_key, call.user.id, vault.new_key(), site)
    return NewKey(api_key=vault.api_key(credential))
