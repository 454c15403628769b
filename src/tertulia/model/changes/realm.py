"""The organization itself."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.groups import UserGroup
from tertulia.model.realm import Realm
from tertulia.model.users import User


class RealmCreated(Change, frozen=True, tag="realm_created"):
    """The organization was founded, with its system groups and the server's own bots."""

    realm: Realm
    groups: tuple[UserGroup, ...]
    bots: tuple[User, ...]


class RealmChanged(Change, frozen=True, tag="realm_changed"):
    """Settings of the organization have new values.

    `gained` and `lost` are only in entries of version 0.1.0, which had no `UserVisibilityChanged`:
    the accounts that became visible or invisible to guests by it, by guest.
    """

    values: dict[str, Any]
    gained: dict[int, tuple[int, ...]] = {}
    lost: dict[int, tuple[int, ...]] = {}


class RealmDeactivated(Change, frozen=True, tag="realm_deactivated"):
    """The organization was deactivated: nobody may do anything in it."""


class RealmReactivated(Change, frozen=True, tag="realm_reactivated"):
    """The organization was reactivated."""
