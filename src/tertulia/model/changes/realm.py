"""The organization itself."""

from typing import Any

from tertulia.model.changes.base import Change
from tertulia.model.groups import UserGroup
from tertulia.model.realm import Realm
from tertulia.model.users import User


class RealmCreated(Change, frozen=True, tag="realm_created"):
    """The organization began, with its system groups and the server's own bots."""

    realm: Realm
    groups: tuple[UserGroup, ...]
    bots: tuple[User, ...]


class RealmChanged(Change, frozen=True, tag="realm_changed"):
    """Settings of the organization have new values.

    `gained` and `lost` are in what 0.1.0 wrote down, before there was `UserVisibilityChanged`: the
    accounts of which guests may know because of it, or not any more, by guest.
    """

    values: dict[str, Any]
    gained: dict[int, tuple[int, ...]] = {}
    lost: dict[int, tuple[int, ...]] = {}


class RealmDeactivated(Change, frozen=True, tag="realm_deactivated"):
    """Nobody may do anything in the organization any more."""


class RealmReactivated(Change, frozen=True, tag="realm_reactivated"):
    """The organization is open again."""
