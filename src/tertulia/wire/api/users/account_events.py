"""The events that tell of accounts (`realm_user`), and how they are filled."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tertulia.domain import permissions
from tertulia.model.users import AddressVisibility, User
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.users.objects import (
    UNKNOWN_NAME,
    UserObject,
    api_email,
    avatar_address,
    avatar_url,
    unknown_user,
    user_shown,
)
from tertulia.wire.api.visibility import sees_user


class UserAddEvent(Event, kw_only=True, tag="realm_user"):
    """There is an account that the viewer did not know of."""

    op: str = "add"
    person: UserObject


class PersonGone(Struct, kw_only=True):
    """An account that the viewer may not know of any more."""

    user_id: int
    full_name: str


class UserRemoveEvent(Event, kw_only=True, tag="realm_user"):
    """The viewer may not know of the account any more."""

    op: str = "remove"
    person: PersonGone


class PersonName(Struct, kw_only=True):
    """A new name."""

    user_id: int
    full_name: str


class PersonRole(Struct, kw_only=True):
    """A new role."""

    user_id: int
    role: int


class PersonDeliveryEmail(Struct, kw_only=True):
    """The real address; null where the viewer does not see it any more."""

    user_id: int
    delivery_email: str | None


class PersonEmail(Struct, kw_only=True):
    """The address by which the interface knows the account."""

    user_id: int
    new_email: str


class PersonTimezone(Struct, kw_only=True):
    """A new time zone."""

    user_id: int
    email: str
    timezone: str


class PersonAvatar(Struct, kw_only=True):
    """A new picture; without addresses where the client computes it from the e-mail address."""

    user_id: int
    avatar_source: str
    avatar_url: str | None
    avatar_url_medium: str | None
    avatar_version: int


class PersonJoined(Struct, kw_only=True):
    """The person signed in for the first time: that is when they joined."""

    user_id: int
    date_joined: str


class PersonBotOwner(Struct, kw_only=True):
    """The bot belongs to somebody else."""

    user_id: int
    bot_owner_id: int


class PersonActivity(Struct, kw_only=True):
    """The account was deactivated, or reactivated."""

    user_id: int
    is_active: bool


class PersonDeleted(Struct, kw_only=True):
    """The account was deactivated for good."""

    user_id: int
    is_deleted: bool = True


AnyPerson = (
    PersonName
    | PersonRole
    | PersonDeliveryEmail
    | PersonEmail
    | PersonTimezone
    | PersonAvatar
    | PersonJoined
    | PersonBotOwner
    | PersonActivity
    | PersonDeleted
)


class UserUpdateEvent(Event, kw_only=True, tag="realm_user"):
    """Something about an account is new."""

    op: str = "update"
    person: AnyPerson


class AccountView(NamedTuple):
    """How a queue sees an account that its owner may know of."""

    address: bool
    client_gravatar: bool


def account_view(context: ProjectionContext, user: User, viewer: Viewer) -> AccountView | None:
    """How the queue sees the account; None where its owner may not know of it."""
    state = context.state
    if not sees_user(context, viewer.user, user):
        return None
    return AccountView(
        permissions.sees_address(state, viewer.user, user), viewer.registration.client_gravatar
    )


def wants_stand_ins(viewer: Viewer) -> bool:
    """Whether the client needs stand-ins for accounts that are out of sight."""
    return not viewer.registration.capabilities.user_list_incomplete


def is_shown_to_all(state: State, user: User) -> bool:
    """Whether the interface knows the account by its real address."""
    visibility = permissions.address_visibility(state, user)
    return user.is_bot or visibility is AddressVisibility.EVERYONE


def as_it_was(state: State, user: User) -> User:
    """An account as an entry says that it was, as far as that may be shown still: with its present
    address, and nothing of it once its person was erased."""
    present = state.users[user.id]
    if present.is_deleted:
        return present
    return msgspec.structs.replace(user, address=present.address)


def added(context: ProjectionContext, user: User, account: AccountView) -> UserAddEvent:
    """The account, with all that may be seen of it."""
    return UserAddEvent(
        person=user_shown(
            context.state,
            user,
            context.host,
            sees_address=account.address,
            client_gravatar=account.client_gravatar,
            with_profile=True,
        )
    )


def removed(user_id: int) -> UserRemoveEvent:
    """The account is out of sight, and so is its name, which may be another one by now."""
    return UserRemoveEvent(person=PersonGone(user_id=user_id, full_name=UNKNOWN_NAME))


def unknown(context: ProjectionContext, user_id: int) -> UserAddEvent:
    """What stands for an account that is out of sight, for clients that cannot do without one."""
    user, joined_at = context.state.users[user_id], context.state.realm.created_at
    shown = unknown_user(user, context.host, joined_at=joined_at)
    shown.is_active = user.is_active
    return UserAddEvent(person=shown)


def named(user: User) -> UserUpdateEvent:
    """The account's name."""
    return UserUpdateEvent(person=PersonName(user_id=user.id, full_name=user.full_name))


def delivery_email(user: User, account: AccountView) -> UserUpdateEvent:
    """The account's real address, where it is seen."""
    shown = user.address if account.address else None
    return UserUpdateEvent(person=PersonDeliveryEmail(user_id=user.id, delivery_email=shown))


def email(context: ProjectionContext, user: User) -> UserUpdateEvent:
    """The account's address in the interface."""
    shown = api_email(context.state, user, context.host)
    return UserUpdateEvent(person=PersonEmail(user_id=user.id, new_email=shown))


def timezone(context: ProjectionContext, user: User) -> UserUpdateEvent:
    """The account's time zone."""
    shown = api_email(context.state, user, context.host)
    return UserUpdateEvent(
        person=PersonTimezone(user_id=user.id, email=shown, timezone=user.timezone)
    )


def avatar(user: User, account: AccountView) -> UserUpdateEvent:
    """The account's picture."""
    url = avatar_url(user, gravatar_by_client=account.client_gravatar, sees_address=account.address)
    return UserUpdateEvent(
        person=PersonAvatar(
            user_id=user.id,
            avatar_source=user.avatar_source,
            avatar_url=url,
            avatar_url_medium=None
            if url is None
            else avatar_address(user, sees_address=account.address, medium=True),
            avatar_version=user.avatar_version,
        )
    )


def address_seen(user: User, account: AccountView) -> Iterable[UserUpdateEvent]:
    """The real address came into sight, or went out of it, and the default picture with it."""
    yield delivery_email(user, account)
    if user.avatar_source == "G":
        yield avatar(user, account)
