"""The table of permission settings, and the validation of their values."""

import pytest

from tertulia.domain.groups.group_settings import (
    CHANNEL_SETTINGS,
    GROUP_SETTINGS,
    REALM_SETTINGS,
    PermissionSetting,
    validated_setting,
)
from tertulia.model.channels import Channel
from tertulia.model.errors import Refused, SystemGroupRequired
from tertulia.model.groups import SYSTEM_GROUPS, GroupSetting, Members, UserGroup
from tertulia.model.organization import Realm
from tertulia.model.users import User
from tertulia.state.state import State

REALM = Realm(uuid="", name="", created_at=0)
CHANNEL = Channel(id=1, name="", created_at=0)
GROUP = UserGroup(id=9, name="")
NAMES = {group.id: group.name for group in SYSTEM_GROUPS}


@pytest.mark.parametrize(
    ("record", "table"),
    [(REALM, REALM_SETTINGS), (CHANNEL, CHANNEL_SETTINGS), (GROUP, GROUP_SETTINGS)],
)
def test_the_table_has_the_model_s_permissions_with_their_defaults(
    record: Realm | Channel | UserGroup, table: dict[str, PermissionSetting]
) -> None:
    fields = {
        field
        for field in record.__struct_fields__
        if field.startswith("can_") or field.endswith("_group")
    }
    # Who may create accounts is set on the server, and clients don't see that it's a group.
    assert table.keys() == fields - {"can_create_users_group"}
    for name, rule in table.items():
        if rule.default_group_name.startswith("role:"):
            assert NAMES[getattr(record, name)] == rule.default_group_name, name


def test_no_setting_accepts_the_internet_group() -> None:
    for table in (REALM_SETTINGS, CHANNEL_SETTINGS, GROUP_SETTINGS):
        assert not any(rule.allow_internet_group for rule in table.values())


@pytest.fixture
def state() -> State:
    state = State()
    for group in SYSTEM_GROUPS:
        state.groups.put(group)
    state.groups.put(UserGroup(id=20, name="friends"))
    state.users.put(User(id=4, address="a@b", full_name="Ann"))
    return state


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("can_create_groups", 6, 6),
        ("can_create_groups", 20, 20),
        ("can_create_groups", Members((), (6,)), 6),
        ("can_create_groups", Members((4, 4), (20, 3, 20)), Members((4,), (3, 20))),
        ("can_create_groups", Members(), Members()),
        ("can_create_groups", 7, Refused),
        ("can_create_groups", Members((4,), (7,)), Refused),
        ("can_create_groups", Members((5,), ()), Refused),
        ("can_create_groups", 8, Refused),
        ("can_create_groups", 0, Refused),
        ("can_manage_all_groups", 1, Refused),
        ("can_manage_all_groups", Members(), Refused),
        ("can_access_all_users_group", 7, 7),
        ("can_access_all_users_group", Members((), (6,)), 6),
        ("can_access_all_users_group", 3, Refused),
        ("can_access_all_users_group", 20, SystemGroupRequired),
        ("can_access_all_users_group", Members((4,), ()), SystemGroupRequired),
        ("can_create_web_public_channel_group", 6, Refused),
        ("can_create_web_public_channel_group", 1, 1),
    ],
)
def test_a_value_is_validated_and_normalized(
    state: State, name: str, given: GroupSetting, expected: GroupSetting | type[Refused]
) -> None:
    rule = REALM_SETTINGS[name]
    if isinstance(expected, type):
        with pytest.raises(expected):
            validated_setting(state, name, rule, given)
    else:
        assert validated_setting(state, name, rule, given) == expected
