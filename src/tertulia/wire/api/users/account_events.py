"""Events of changes to accounts (`realm_user`)."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts.avatars import full_avatar_url
from tertulia.model.users import AddressVisibility, User
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.users.objects import (
    UNKNOWN_NAME,
    UserFormat,
    UserObject,
    api_email,
    avatar_url,
    shared_user_object,
    unknown_user,
)
from tertulia.wire.api.visibility import sees_user


class UserAddEvent(Event, kw_only=True, tag="realm_user"):
    """You can see an account that you couldn't see before."""

    op: str = "add"
    person: UserObject


class PersonGone(Struct, kw_only=True):
    """An account that you can no longer see."""

    user_id: int
    full_name: str


class UserRemoveEvent(Event, kw_only=True, tag="realm_user"):
    """You can no longer see the account."""

    op: str = "remove"
    person: PersonGone


class PersonFullName(Struct, kw_only=True):
    """A new name."""

    user_id: int
    full_name: str


class PersonRole(Struct, kw_only=True):
    """A new role."""

    user_id: int
    role: int


class PersonDeliveryEmail(Struct, kw_only=True):
    """The real email address, or null if you can no longer see it."""

    user_id: int
    delivery_email: str | None


class PersonEmail(Struct, kw_only=True):
    """The email address that the API uses for the account."""

    user_id: int
    new_email: str


class PersonTimezone(Struct, kw_only=True):
    """A new time zone."""

    user_id: int
    email: str
    timezone: str


class PersonAvatar(Struct, kw_only=True):
    """A new picture. The URLs are null if the client computes them from the email address."""

    user_id: int
    avatar_source: str
    avatar_url: str | None
    avatar_url_medium: str | None
    avatar_version: int


class PersonJoined(Struct, kw_only=True):
    """The person signed in for the first time, which is when they joined."""

    user_id: int
    date_joined: str


class PersonStub(Struct, kw_only=True):
    """The account is no longer a placeholder: its owner signed in."""

    user_id: int
    is_imported_stub: bool


class PersonBotOwner(Struct, kw_only=True):
    """A new owner of the bot."""

    user_id: int
    bot_owner_id: int


class PersonActivity(Struct, kw_only=True):
    """The account was deactivated or reactivated."""

    user_id: int
    is_active: bool


class PersonDeleted(Struct, kw_only=True):
    """The account was permanently deleted."""

    user_id: int
    is_deleted: bool = True


AnyPerson = (
    PersonFullName
    | PersonRole
    | PersonDeliveryEmail
    | PersonEmail
    | PersonTimezone
    | PersonAvatar
    | PersonJoined
    | PersonStub
    | PersonBotOwner
    | PersonActivity
    | PersonDeleted
)


class UserUpdateEvent(Event, kw_only=True, tag="realm_user"):
    """An account's properties changed."""

    op: str = "update"
    person: AnyPerson


class AccountView(NamedTuple):
    """How a queue presents an account."""

    address: bool
    client_gravatar: bool


def account_view(context: ProjectionContext, user: User, viewer: Viewer) -> AccountView | None:
    """Return the account as the queue presents it, or None if the viewer can't see it."""
    state = context.state
    if not sees_user(context, viewer.user, user):
        return None
    return AccountView(
        permissions.sees_address(state, viewer.user, user), viewer.registration.client_gravatar
    )


def wants_stand_ins(viewer: Viewer) -> bool:
    """Whether the client needs placeholders for accounts that the viewer can't see."""
    return not viewer.registration.capabilities.user_list_incomplete


def is_shown_to_all(state: State, user: User) -> bool:
    """Whether the API uses the account's real address."""
    visibility = permissions.address_visibility(state, user)
    return user.is_bot or visibility is AddressVisibility.EVERYONE


def as_it_was(state: State, user: User) -> User:
    """Return the account as recorded in an entry, but with its current address; if the account was
    deleted, return it as it is now."""
    present = state.users[user.id]
    if present.is_deleted:
        return present
    return msgspec.structs.replace(user, address=present.address)


def added(context: ProjectionContext, user: User, account: AccountView) -> UserAddEvent:
    form = UserFormat(client_gravatar=account.client_gravatar, with_profile=True)
    return UserAddEvent(
        person=shared_user_object(
            context.state, user, context.host, form, sees_address=account.address
        )
    )


def removed(user_id: int) -> UserRemoveEvent:
    """Return the event without the account's current name, which the viewer may not know."""
    return UserRemoveEvent(person=PersonGone(user_id=user_id, full_name=UNKNOWN_NAME))


def unknown(context: ProjectionContext, user_id: int) -> UserAddEvent:
    """Return the event with a placeholder for an account that the viewer can't see."""
    user, joined_at = context.state.users[user_id], context.state.realm.created_at
    person = unknown_user(user, context.host, joined_at=joined_at)
    person.is_active = True  # Clients that need placeholders expect this field.
    return UserAddEvent(person=person)


def delivery_email(user: User, account: AccountView) -> UserUpdateEvent:
    address = user.address if account.address else None
    return UserUpdateEvent(person=PersonDeliveryEmail(user_id=user.id, delivery_email=address))


def email(context: ProjectionContext, user: User) -> UserUpdateEvent:
    address = api_email(context.state, user, context.host)
    return UserUpdateEvent(person=PersonEmail(user_id=user.id, new_email=address))


def avatar(user: User, account: AccountView) -> UserUpdateEvent:
    url = avatar_url(user, gravatar_by_client=account.client_gravatar, sees_address=account.address)
    return UserUpdateEvent(
        person=PersonAvatar(
            user_id=user.id,
            avatar_source=user.avatar_source,
            avatar_url=url,
            avatar_url_medium=None
            if url is None
            else full_avatar_url(user, sees_address=account.address, medium=True),
            avatar_version=user.avatar_version,
        )
    )


def address_seen(user: User, account: AccountView) -> Iterable[UserUpdateEvent]:
    """Return the events for a viewer who gained or lost access to the address, and so to the
    default picture."""
    yield delivery_email(user, account)
    if user.avatar_source == "G":
        yield avatar(user, account)
