"""Permission settings: the rules for their values, and checking values that clients send."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tertulia.model.errors import Refused, StaleExpectation, SystemGroupRequired
from tertulia.model.groups import GroupSetting, Members, SystemGroup, UserGroup, normalized
from tertulia.model.organization import Realm
from tertulia.model.settings import Permission, declared_settings
from tertulia.state.state import State

CHANNEL_CREATOR: Final = "channel_creator"
GROUP_CREATOR: Final = "group_creator"
"""The default that stands for the person who creates the channel or group."""


class PermissionSetting(Struct, frozen=True, kw_only=True):
    """The groups, by name, that a permission setting accepts; all if `allowed_system_groups` is
    empty. Only settings of groups have a `default_for_system_groups`."""

    default_group_name: str
    allow_everyone_group: bool
    allow_nobody_group: bool = True
    allow_internet_group: bool = False
    require_system_group: bool = False
    default_for_system_groups: str | None = None
    allowed_system_groups: tuple[str, ...] = ()


class PermissionUpdate(Struct, frozen=True, kw_only=True):
    """A new value for a permission, and the present value as the client knows it."""

    new: GroupSetting
    old: GroupSetting | None = None


def _setting(
    default: str,
    *,
    everyone: bool = False,
    nobody: bool = True,
    for_system_groups: str | None = None,
    only: tuple[str, ...] = (),
) -> PermissionSetting:
    names = {CHANNEL_CREATOR, GROUP_CREATOR}
    return PermissionSetting(
        default_group_name=default if default in names else f"role:{default}",
        allow_everyone_group=everyone,
        allow_nobody_group=nobody,
        require_system_group=bool(only),
        default_for_system_groups=for_system_groups and f"role:{for_system_groups}",
        allowed_system_groups=tuple(f"role:{name}" for name in only),
    )


REALM_SETTINGS: Final[Mapping[str, PermissionSetting]] = {
    name: _setting(
        SystemGroup(setting.default).name.lower(),
        everyone=setting.setting.everyone,
        nobody=setting.setting.nobody,
        only=setting.setting.only,
    )
    for name, setting in sorted(declared_settings(Realm).items())
    if isinstance(setting.setting, Permission)
}

CHANNEL_SETTINGS: Final[Mapping[str, PermissionSetting]] = {
    "can_add_subscribers_group": _setting("nobody"),
    "can_administer_channel_group": _setting(CHANNEL_CREATOR),
    "can_create_topic_group": _setting("everyone", everyone=True),
    "can_delete_any_message_group": _setting("nobody", everyone=True),
    "can_delete_own_message_group": _setting("nobody", everyone=True),
    "can_move_messages_out_of_channel_group": _setting("nobody", everyone=True),
    "can_move_messages_within_channel_group": _setting("nobody", everyone=True),
    "can_remove_subscribers_group": _setting("administrators", everyone=True),
    "can_resolve_topics_group": _setting("nobody", everyone=True),
    "can_send_message_group": _setting("everyone", everyone=True),
    "can_subscribe_group": _setting("nobody"),
}

GROUP_SETTINGS: Final[Mapping[str, PermissionSetting]] = {
    "can_add_members_group": _setting(GROUP_CREATOR, for_system_groups="nobody"),
    "can_join_group": _setting("nobody", for_system_groups="nobody"),
    "can_leave_group": _setting("everyone", everyone=True, for_system_groups="nobody"),
    "can_manage_group": _setting(GROUP_CREATOR, for_system_groups="nobody"),
    "can_mention_group": _setting("everyone", everyone=True, for_system_groups="nobody"),
    "can_remove_members_group": _setting("nobody", for_system_groups="nobody"),
}

REFUSED_SYSTEM_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "can_mention_group": frozenset({"role:owners"})
}
"""Groups that a setting refuses although the rule that clients see can't express that."""


def validated_setting(
    state: State, name: str, rule: PermissionSetting, setting: GroupSetting
) -> GroupSetting:
    """Return the normalized setting.

    Raise Refused for unknown or deactivated groups and people, and for groups that the rule of
    `name` doesn't allow; SystemGroupRequired if it allows only system groups.
    """
    value = normalized(setting)
    if isinstance(value, int):
        _check_group(name, rule, _group(state, value))
        return value
    if rule.require_system_group:
        raise SystemGroupRequired(name)
    for user_id in value.direct_members:
        user = state.users.get(user_id)
        if user is None or not user.is_active or user.is_system_bot:
            raise Refused(f"User {user_id} doesn't exist.")
    for group_id in value.direct_subgroups:
        _check_group(name, rule, _group(state, group_id))
    if not value.direct_members and not value.direct_subgroups and not rule.allow_nobody_group:
        raise Refused(f"At least one person or group must have the permission '{name}'.")
    return value


def _group(state: State, group_id: int) -> UserGroup:
    group = state.groups.get(group_id)
    if group is None or group.deactivated:
        raise Refused(f"No user group with ID {group_id} exists.")
    return group


def _check_group(name: str, rule: PermissionSetting, group: UserGroup) -> None:
    if not group.is_system:
        if rule.require_system_group:
            raise SystemGroupRequired(name)
        return
    allowed = {
        SystemGroup.EVERYONE.value: rule.allow_everyone_group,
        SystemGroup.NOBODY.value: rule.allow_nobody_group,
        SystemGroup.INTERNET.value: rule.allow_internet_group,
    }.get(group.id, True)
    if rule.allowed_system_groups and group.name not in rule.allowed_system_groups:
        allowed = False
    if not allowed or group.name in REFUSED_SYSTEM_GROUPS.get(name, ()):
        raise Refused(f"'{name}' can't be set to '{group.name}'.")


def updated_setting(
    state: State, name: str, rule: PermissionSetting, present: GroupSetting, given: PermissionUpdate
) -> GroupSetting:
    """Return the new value of a setting. Raise as `validated_setting`, and StaleExpectation if the
    present value isn't the one that the client knows."""
    if given.old is not None and _setting_as_seen(state, given.old) != _setting_as_seen(
        state, present
    ):
        raise StaleExpectation(f"'{name}' has changed in the meantime.")
    return validated_setting(state, name, rule, given.new)


def _setting_as_seen(state: State, setting: GroupSetting) -> GroupSetting:
    """Return the setting without deactivated accounts, as clients see it."""
    value = normalized(setting)
    if isinstance(value, int):
        return value
    active = (state.users.get(user_id) for user_id in value.direct_members)
    return normalized(
        Members(
            tuple(u.id for u in active if u is not None and u.is_active), value.direct_subgroups
        )
    )
