"""Finding, creating, changing, and deactivating accounts."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import access_keys, deactivation, users
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.domain.messages.deleting import DeletionScope
from tertulia.model.errors import NotPermitted, Refused
from tertulia.model.users import Role, User
from tertulia.service import deletions
from tertulia.service.accounts import good_password, leave
from tertulia.wire.api.profiles import ProfileEntry, ProfileValueObject, new_profile, profile_data
from tertulia.wire.api.shard_ranges import ShardRange
from tertulia.wire.api.users import objects
from tertulia.wire.api.users.objects import (
    AccountVisibility,
    UserFormat,
    UserObject,
    api_email,
    date_joined,
    user_object,
)
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Doc, Int, IntPath, Params, Path, TextPath
from tertulia.wire.http.responses import array_items, fragmented, json_array
from tertulia.wire.http.routing import ApiResponse, Call

RoleNumber = Literal[100, 200, 300, 400, 600]

# Reading


_ClientGravatar = Annotated[
    bool, Doc("Return null as `avatar_url` of a Gravatar that you can compute.")
]
_IncludeProfile = Annotated[bool, Doc("Include `profile_data`.")]


class UsersResponse(ApiResponse, kw_only=True):
    """Accounts in ascending order of ID."""

    members: list[UserObject]
    next_after: int | UnsetType | None = UNSET
    """Present if `limit` was sent: the value of `after` for the next page, or null on the last
    page."""


class _Page(NamedTuple):
    first: Sequence[int]
    """The remaining IDs of a range, if the page begins in the middle of it."""
    ranges: list[ShardRange[AccountVisibility]]
    next_after: int | None
    """The last ID of the page, or None on the last page."""


def _page(ranges: Sequence[ShardRange[AccountVisibility]], after: int, limit: int | None) -> _Page:
    """Return the accounts with IDs above `after`, in whole ranges until there are `limit`."""
    first: Sequence[int] = ()
    rest: list[ShardRange[AccountVisibility]] = []
    count, last = 0, after
    for item in ranges:
        if item.ids[-1] <= after:
            continue
        if limit is not None and count >= limit:
            return _Page(first, rest, last)
        if item.ids[0] > after:
            rest.append(item)
            count += len(item.ids)
        else:
            first = item.ids[bisect_right(item.ids, after) :]
            count += len(first)
        last = item.ids[-1]
    return _Page(first, rest, None)


def _encoded_page(call: Call, form: UserFormat, after: int, limit: int | None) -> UsersResponse:
    state, viewer = call.state, None if call.user_id is None else call.user
    page = _page(objects.by_visibility(state, viewer), after, limit)
    encoded = objects.encoded_users(
        call.node.fragments,
        state,
        viewer,
        page.ranges,
        objects.everybody,
        form,
        call.node.config.address_host,
    )
    # Not cached: a page can begin anywhere.
    first = array_items(_listed(call, form, page.first))
    more = {} if limit is None else {"next_after": page.next_after}
    return fragmented(UsersResponse, {"members": json_array([first, *encoded]), **more})


def _listed(call: Call, form: UserFormat, user_ids: Iterable[int]) -> list[UserObject]:
    """Return the accounts that the caller can see."""
    state, viewer = call.state, None if call.user_id is None else call.user
    host = call.node.config.address_host
    return [
        user_object(state, viewer, user, host, form)
        for user in (state.users[user_id] for user_id in user_ids)
        if not user.is_system_bot and (viewer is None or permissions.sees_user(state, viewer, user))
    ]


async def get_users(
    call: Call,
    client_gravatar: _ClientGravatar = True,
    include_custom_profile_fields: _IncludeProfile = False,
    user_ids: Annotated[list[Int] | None, Doc("Return only these users; all by default.")] = None,
    after: Annotated[Int, Doc("Tertulia only: return only accounts with greater IDs.")] = 0,
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Doc(
            "Tertulia only: the approximate number of accounts to check. Pass `next_after` from the"
            " response as `after` to get the next page."
        ),
    ] = None,
) -> UsersResponse:
    """List the people and bots that you can see."""
    if user_ids is not None and (after or limit is not None):
        raise Refused("'after' and 'limit' can't be combined with 'user_ids'.")
    form = UserFormat(client_gravatar, include_custom_profile_fields)
    if call.reach is not None:
        reached = [user.id for user in access_keys.visible_users(call.state, call.user)]
        wanted = reached if user_ids is None else sorted(set(user_ids).intersection(reached))
        members = _listed(call, form, [user_id for user_id in wanted if user_id > after])
        return UsersResponse(members=members, next_after=UNSET if limit is None else None)
    if user_ids is None:
        fragments = call.node.fragments
        async with fragments.turns.turn(call.request):
            return await fragments.in_steps(lambda: _encoded_page(call, form, after, limit))
    known = [user_id for user_id in sorted(set(user_ids)) if user_id in call.state.users]
    return UsersResponse(members=_listed(call, form, known))


class OwnUserResponse(ApiResponse, kw_only=True):
    """Your account."""

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
    is_imported_stub: bool
    role: int
    timezone: str
    avatar_url: str
    avatar_version: int
    max_message_id: int
    profile_data: dict[str, ProfileValueObject] | UnsetType = UNSET


async def get_own_user(call: Call) -> OwnUserResponse:
    """Get your own account."""
    state, user = call.state, call.user
    return OwnUserResponse(
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
        is_imported_stub=user.is_placeholder,
        role=user.role.value,
        timezone=user.timezone,
        avatar_url=full_avatar_url(user, sees_address=True),
        avatar_version=user.avatar_version,
        max_message_id=state.last_message_id or -1,
        profile_data=UNSET if user.is_bot else profile_data(state, user.id),
    )


class UserResponse(ApiResponse, kw_only=True):
    """An account."""

    user: UserObject


async def get_user(
    call: Call,
    user_id: IntPath,
    client_gravatar: _ClientGravatar = True,
    include_custom_profile_fields: _IncludeProfile = False,
) -> UserResponse:
    """Get a user by ID."""
    return _one(call, user_id, UserFormat(client_gravatar, include_custom_profile_fields))


async def get_user_by_email(
    call: Call,
    email: Annotated[
        TextPath, Doc("The real address, if you can see it, or the placeholder address.")
    ],
    client_gravatar: _ClientGravatar = True,
    include_custom_profile_fields: _IncludeProfile = False,
) -> UserResponse:
    """Get a user by email address."""
    form = UserFormat(client_gravatar, include_custom_profile_fields)
    return _one(call, _id_of(call, email), form)


def _one(call: Call, user_id: int | None, form: UserFormat) -> UserResponse:
    user = access_keys.reached_user(call.state, call.user, user_id)
    host = call.node.config.address_host
    return UserResponse(user=user_object(call.state, call.user, user, host, form))


def _id_of(call: Call, email: str) -> int | None:
    user = call.account_with(email)
    return user.id if user else None


# Creating


class CreateUserResponse(ApiResponse, kw_only=True):
    """The ID of the new account."""

    user_id: int


async def create_user(call: Call, email: str, password: str, full_name: str) -> CreateUserResponse:
    """Create an account for a person and subscribe it to the default channels."""
    sign_in.require_confirmed(call)
    call.consider(users.check_new, email, full_name)
    password = await good_password(call.node, password, email, full_name)
    new = users.NewUser(
        address=email,
        full_name=full_name,
        credential=await call.node.vault.credential(0, password),
    )
    user: User = await call.submit(users.create_for_another, new)
    return CreateUserResponse(user_id=user.id)


# Changing


class _UserChanges(Params, kw_only=True, frozen=True):
    full_name: str | None = None
    role: RoleNumber | None = None
    new_email: str | None = None
    profile_data: list[ProfileEntry] | None = None


class UpdateUser(_UserChanges, kw_only=True, frozen=True):
    user_id: Annotated[Int, Path()]


class UpdateUserByEmail(_UserChanges, kw_only=True, frozen=True):
    email: Annotated[str, Path()]


async def update_user(call: Call, params: UpdateUser) -> None:
    """Change another user's account. Requires an administrator."""
    await _update(call, params.user_id, params)


async def update_user_by_email(call: Call, params: UpdateUserByEmail) -> None:
    """Change another user's account, found by its email address. Requires an administrator."""
    user = permissions.visible_user(call.state, call.user, _id_of(call, params.email))
    await _update(call, user.id, params)


async def _update(call: Call, user_id: int, params: _UserChanges) -> None:
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


# Deactivating and reactivating


class DeactivationActions(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What to delete when an account is deactivated: its profile with name and address, and its
    messages and files (a Tertulia extension), including those of its bots."""

    delete_profile: bool = False
    delete_public_channel_messages: bool = False
    delete_private_channel_messages: bool = False
    delete_direct_messages: bool = False
    delete_files: bool = False


_KEEP_ALL = DeactivationActions()


class DeactivateUserResponse(ApiResponse, kw_only=True):
    """Whether everything was deleted."""

    complete: bool | UnsetType = UNSET
    """Present if messages are deleted. If false, some are left: the server continues after a
    minute, or when you send the request again. The profile is deleted last."""
    deleted_messages: int | UnsetType = UNSET
    """The number of messages deleted so far. Present if `complete` is false."""


async def deactivate_user(
    call: Call,
    user_id: IntPath,
    actions: Annotated[
        DeactivationActions,
        Doc("What to delete. An account whose profile is deleted can't be reactivated."),
    ] = _KEEP_ALL,
    deactivation_notification_comment: Annotated[
        Annotated[str, Meta(max_length=2000)] | None,
        Doc(
            "A comment for the email that tells the person about the deactivation. If null, no"
            " email is sent."
        ),
    ] = None,
) -> DeactivateUserResponse:
    """Deactivate an account and the bots it owns."""
    if user_id not in call.state.users.bots:
        sign_in.require_confirmed(call)
    places = DeletionScope(
        open=actions.delete_public_channel_messages,
        closed=actions.delete_private_channel_messages,
        direct=actions.delete_direct_messages,
    )
    complete = await leave(
        call,
        user_id,
        places,
        erased=actions.delete_profile,
        comment=deactivation_notification_comment,
        files=actions.delete_files,
    )
    deletion = None if complete else await deletions.found(call.node.store, user_id)
    return DeactivateUserResponse(
        complete=complete if places else UNSET,
        deleted_messages=UNSET if deletion is None else deletion.messages,
    )


async def deactivate_own_user(call: Call) -> None:
    """Deactivate your own account and the bots it owns."""
    _require_person(call)
    sign_in.require_confirmed(call)
    await call.submit(deactivation.deactivate, call.user.id)


def _require_person(call: Call) -> None:
    if call.user.is_bot:
        raise NotPermitted("Bots can't do this.")


async def reactivate_user(call: Call, user_id: IntPath) -> None:
    """Reactivate an account. It gets a new API key."""
    await call.submit(deactivation.reactivate, user_id, call.node.vault.new_key())


# API keys


class ApiKeyResponse(ApiResponse, kw_only=True):
    """An account's API key."""

    api_key: str


async def regenerate_own_key(call: Call) -> ApiKeyResponse:
    """Replace your API key. The old one stops working immediately."""
    _require_person(call)
    sign_in.require_confirmed(call)
    vault, site = call.node.vault, call.node.config.mail_site
    credential = await call.submit(users.replace_key, call.user.id, vault.new_key(), site)
    return ApiKeyResponse(api_key=vault.api_key(credential))
