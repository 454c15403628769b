"""The fields of POST /register and their types."""

from typing import Any

import msgspec
import pytest

from tests.support import Organization
from tests.wire.client_types import MOBILE, MOBILE_REQUEST, TERMINAL, TERMINAL_REQUEST
from tests.wire.register_fields import ALWAYS, FIELDS, LEGACY, SETTINGS, TOGETHER
from tests.wire.sample_organization import Data, lived_in


def fields(names: str) -> set[str]:
    return set(names.split())


async def test_each_fetch_type_returns_exactly_its_fields(org: Organization) -> None:
    for fetch, names in {**FIELDS, **LEGACY}.items():
        data = (await org["ben"].register(fetch_event_types=[fetch])).data
        assert set(data) == fields(ALWAYS) | fields(names), fetch


async def test_fields_that_need_several_fetch_types_come_with_all_of_them(
    org: Organization,
) -> None:
    for types, names in TOGETHER.items():
        data = (await org["ben"].register(fetch_event_types=list(types))).data
        assert set(data) == fields(ALWAYS) | fields(names)


@pytest.mark.parametrize("who", ["ann", "ben", "gus", "robo"])
async def test_without_fetch_types_every_field_is_returned(
    readonly_org: Organization, who: str
) -> None:
    every = {
        name for names in (ALWAYS, *FIELDS.values(), *TOGETHER.values()) for name in names.split()
    }
    assert set((await readonly_org[who].register()).data) == every


async def test_event_types_default_to_the_fetch_types(org: Organization) -> None:
    data = (await org["ben"].register(event_types=["message", "alert_words"])).data
    assert set(data) == fields(ALWAYS) | {"max_message_id", "alert_words"}
    none = (await org["ben"].register(event_types=[])).data
    assert set(none) == fields(ALWAYS)


@pytest.mark.parametrize(
    ("event_types", "given"),
    [(None, True), (["message"], True), (["user_topic"], False)],
)
async def test_muted_topics_are_for_clients_without_user_topics(
    org: Organization, event_types: list[str] | None, given: bool
) -> None:
    listener = await org["ben"].register(
        event_types=event_types, fetch_event_types=["muted_topics"]
    )
    assert ("muted_topics" in listener.data) is given


async def test_all_settings_have_their_api_names(org: Organization) -> None:
    data = (await org["ben"].register()).data
    assert set(data["user_settings"]) == fields(SETTINGS) | {"timezone"}
    assert set(data["realm_user_settings_defaults"]) == fields(SETTINGS)


async def test_permission_settings_are_described_for_every_kind(org: Organization) -> None:
    described = (await org["ben"].register()).data["server_supported_permission_settings"]
    assert {kind: len(settings) for kind, settings in described.items()} == {
        "realm": 25,
        "stream": 11,
        "group": 6,
    }
    assert described["group"]["can_leave_group"] == {
        "require_system_group": False,
        "allow_internet_group": False,
        "allow_nobody_group": True,
        "allow_everyone_group": True,
        "default_group_name": "role:everyone",
        "default_for_system_groups": "role:nobody",
        "allowed_system_groups": [],
    }


# What real clients depend on


@pytest.fixture(scope="module")
async def kept_lived_in(shared_org: Organization) -> Organization:
    await lived_in(shared_org)
    return shared_org


@pytest.mark.parametrize(
    ("request_", "types"),
    [(MOBILE_REQUEST, MOBILE), (TERMINAL_REQUEST, TERMINAL)],
    ids=["mobile", "terminal"],
)
@pytest.mark.parametrize("who", ["ann", "ben", "gus"])
async def test_a_client_finds_all_fields_with_the_types_it_needs(
    kept_lived_in: Organization, who: str, request_: Data, types: Data
) -> None:
    data = (await kept_lived_in[who].register(**request_)).data
    wrong = {name: reason for name, kind in types.items() if (reason := mistake(data, name, kind))}
    assert wrong == {}
    assert all(
        len(s["color"]) == 7 and s["color"] == s["color"].lower() for s in data["subscriptions"]
    )


def mistake(data: Data, name: str, kind: Any) -> str | None:
    """What's wrong with a field for a client that expects this type."""
    if name not in data:
        return "missing"
    try:
        msgspec.convert(data[name], kind, str_keys=True)
    except msgspec.ValidationError as error:
        return str(error)
    return None


async def test_the_lists_of_client_fields_are_not_empty(org: Organization) -> None:
    await lived_in(org)
    data = (await org["ben"].register()).data
    for name in (
        *("subscriptions", "unsubscribed", "never_subscribed", "streams", "realm_user_groups"),
        *("realm_users", "realm_non_active_users", "cross_realm_bots", "presences"),
        *("recent_private_conversations", "starred_messages", "realm_bots"),
    ):
        assert data[name], name
    assert all(data["unread_msgs"][kind] for kind in ("pms", "streams", "huddles"))
