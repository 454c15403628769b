"""Accounts."""

from typing import Any

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.changes.groups import ChannelSight
from tertulia.model.users import Credential, PersonalSettings, User


class UserCreated(Change, frozen=True, tag="user_created"):
    """An account exists. `group_ids` are the groups that it is directly in: system groups by its
    role, others because it was made so."""

    user: User
    credential: Credential
    settings: PersonalSettings
    group_ids: tuple[int, ...] = ()


class UserChanged(Change, frozen=True, tag="user_changed"):
    """The named fields of an account (`full_name`, `role`, `address`, `timezone`, …) are new.

    `was` holds the values before. A new role takes the account out of the system groups `left`
    and into `joined`; because of it the account can see the channels `gained`, and cannot see the
    channels `lost` any more. `subscribers` are those of each channel gained, at that moment.

    `rights` are the roles before and after whose rights bots have where that changed: the account
    itself, or bots that it owns. `sight` is what these, beside the account, see of channels by it.
    """

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    left: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: dict[int, tuple[int, ...]] = {}
    rights: dict[int, tuple[int, int]] = {}
    sight: tuple[ChannelSight, ...] = ()


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The permission settings that name an account itself, beside groups."""

    channels: tuple[tuple[int, str], ...] = ()
    """Channel and setting."""
    groups: tuple[tuple[int, str], ...] = ()
    """User group and setting."""
    realm: tuple[str, ...] = ()


class UserDeactivated(Change, frozen=True, tag="user_deactivated"):
    """The account cannot be used any more. Its subscriptions and memberships stay, unseen.

    `channel_ids` are the channels it is subscribed to, `group_ids` the groups it is directly in,
    `named` the settings that show it as a holder. `deactivated_groups` are those of these groups
    that are out of use.
    """

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()
    deactivated_groups: tuple[int, ...] = ()


class UserReactivated(Change, frozen=True, tag="user_reactivated"):
    """The account can be used again. The other fields are as in its deactivation."""

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()
    deactivated_groups: tuple[int, ...] = ()


class UserVisibility(Struct, frozen=True, kw_only=True):
    """Accounts that become visible or invisible to the same viewers: ranges of IDs, each with its
    first and its last. Viewers and ranges are ascending; viewers may be among the accounts."""

    viewers: tuple[int, ...]
    users: tuple[tuple[int, int], ...]


class UserVisibilityChanged(Change, frozen=True, tag="user_visibility_changed"):
    """Accounts became visible to limited guests (`gained`, in the log before the change that made
    them so), or invisible (`lost`, after that change)."""

    gained: tuple[UserVisibility, ...] = ()
    lost: tuple[UserVisibility, ...] = ()


class CredentialChanged(Change, frozen=True, tag="credential_changed"):
    """A new password or key; the old one is void."""

    credential: Credential
    same_key: bool = False
    """Only the password is new."""


class SettingsChanged(Change, frozen=True, tag="settings_changed"):
    """Some of an account's personal settings are new. `was` holds the values before.

    `by_owner`: the account changed them itself.
    """

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    by_owner: bool = False
