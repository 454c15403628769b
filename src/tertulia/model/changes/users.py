"""Accounts."""

from typing import Any

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.changes.groups import ChannelSight
from tertulia.model.users import Credential, PersonalSettings, User


class UserCreated(Change, frozen=True, tag="user_created"):
    """An account was created. `group_ids` are the groups that it is directly in: the system groups
    of its role, and others that were chosen for it."""

    user: User
    credential: Credential
    settings: PersonalSettings
    group_ids: tuple[int, ...] = ()


class UserChanged(Change, frozen=True, tag="user_changed"):
    """Fields of an account (`full_name`, `role`, `address`, `timezone`, …) have new values.

    `was` has the old values. A new role takes the account out of the system groups `left` and into
    `joined`; the account gains sight of the channels `gained`, and loses sight of `lost`.
    `subscribers` are the subscribers of each channel gained, at that moment.

    `rights` are bots whose rights changed (the account itself, or bots that it owns), each with
    the roles whose rights it had before and has afterwards. `sight` are the channels of which
    these bots, beside the account, gained and lost sight.
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
    """The permission settings that name an account itself, and not only groups."""

    channels: tuple[tuple[int, str], ...] = ()
    """Channel and setting."""
    groups: tuple[tuple[int, str], ...] = ()
    """User group and setting."""
    realm: tuple[str, ...] = ()


class UserDeactivated(Change, frozen=True, tag="user_deactivated"):
    """An account was deactivated. Its subscriptions and memberships stay, hidden.

    `channel_ids` are the channels it is subscribed to, `group_ids` the groups it is directly in,
    `named` the settings that name it. `deactivated_groups` are the deactivated ones of these
    groups.
    """

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()
    deactivated_groups: tuple[int, ...] = ()


class UserReactivated(Change, frozen=True, tag="user_reactivated"):
    """An account was reactivated. The other fields are as in `UserDeactivated`."""

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
    """An account has a new password or API key; the old one is void."""

    credential: Credential
    same_key: bool = False
    """Whether only the password is new."""


class SettingsChanged(Change, frozen=True, tag="settings_changed"):
    """Personal settings of an account have new values. `was` has the old ones.

    `by_owner`: whether the account changed them itself.
    """

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    by_owner: bool = False
