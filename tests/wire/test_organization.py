"""PATCH /realm: organization settings."""

from typing import Any

import pytest
from msgspec.structs import replace

from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.model.changes import UserDeactivated, UserGroupCreated
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.model.users import Role
from tests.support import Organization, TestClock, new_organization, open_organization, row
from tests.wire.sample_organization import Data

TOGETHER = {
    "allow_message_editing",
    "message_content_edit_limit_seconds",
    "message_edit_history_visibility_policy",
    "topics_policy",
}
SETTINGS: list[tuple[str, Any, Any]] = [
    ("name", "  The Round Table ", "The Round Table"),
    ("name", "n" * 40, "n" * 40),
    ("allow_message_editing", False, False),
    ("avatar_changes_disabled", True, True),
    ("default_avatar_source", "J", "J"),
    ("default_code_block_language", "python", "python"),
    ("default_language", "de", "de"),
    ("digest_emails_enabled", True, True),
    ("digest_weekday", 6, 6),
    ("digest_weekday", 0, 0),
    ("disallow_disposable_email_addresses", False, False),
    ("email_changes_disabled", True, True),
    ("emails_restricted_to_domains", True, True),
    ("enable_guest_user_dm_warning", False, False),
    ("enable_guest_user_indicator", False, False),
    ("enable_read_receipts", False, False),
    ("enable_spectator_access", True, True),
    ("gif_rating_policy", 5, 5),
    ("inline_image_preview", False, False),
    ("inline_url_embed_preview", True, True),
    ("invite_required", False, False),
    ("jitsi_server_url", "https://meet.example.com", "https://meet.example.com"),
    ("jitsi_server_url", '"https://meet.example.org"', "https://meet.example.org"),
    ("media_preview_size", 200, 200),
    ("message_content_allowed_in_email_notifications", False, False),
    ("message_content_delete_limit_seconds", 60, 60),
    ("message_content_delete_limit_seconds", "unlimited", None),
    ("message_content_edit_limit_seconds", 60, 60),
    ("message_content_edit_limit_seconds", '"unlimited"', None),
    ("message_edit_history_visibility_policy", "moves", "moves"),
    ("message_edit_history_visibility_policy", "none", "none"),
    ("message_retention_days", 30, 30),
    ("move_messages_between_streams_limit_seconds", 60, 60),
    ("move_messages_between_streams_limit_seconds", "unlimited", None),
    ("move_messages_within_stream_limit_seconds", 60, 60),
    ("move_messages_within_stream_limit_seconds", "unlimited", None),
    ("name_changes_disabled", True, True),
    ("org_type", 35, 35),
    ("require_e2ee_push_notifications", True, True),
    ("require_unique_names", True, True),
    ("send_channel_events_messages", False, False),
    ("send_welcome_emails", False, False),
    ("topics_policy", "disable_empty_topic", "disable_empty_topic"),
    ("video_chat_provider", 0, 0),
    ("waiting_period_threshold", 3, 3),
    ("want_advertise_in_communities_directory", True, True),
    ("welcome_message_custom_text", "w" * 8000, "w" * 8000),
    ("welcome_message_custom_text", "😀" * 8000, "😀" * 8000),
]


@pytest.mark.parametrize(("name", "sent", "shown"), SETTINGS)
async def test_a_changed_setting_is_sent_to_everyone_and_shown_afterwards(
    shared_org: Organization, name: str, sent: Any, shown: Any
) -> None:
    """Each value differs from those before, so they can share an organization."""
    org = shared_org
    listeners = [await org[who].register(event_types=["realm"]) for who in ("ben", "gus", "robo")]
    assert (await org["ann"].patch("/realm", **{name: sent})).ok
    for listener in listeners:
        (event,) = await listener.events()
        if name in TOGETHER:
            assert (event["op"], event["property"]) == ("update_dict", "default")
            assert event["data"][name] == shown
        else:
            told = (event["op"], event["property"], event["value"])
            assert told == ("update", name, shown)
    shown_later = (await org["ben"].register(event_types=["realm"])).data
    assert shown_later[f"realm_{name}"] == shown


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("message_edit_history_visibility_policy", {"allow_edit_history": False}),
        ("topics_policy", {"mandatory_topics": True}),
    ],
)
async def test_obsolete_settings_accompany_their_replacements(
    org: Organization, name: str, following: Data
) -> None:
    value = {"topics_policy": "disable_empty_topic"}.get(name, "none")
    ben = await org["ben"].register()
    await org["ann"].patch("/realm", **{name: value})
    (event,) = await ben.events()
    assert event["data"] == {name: value, **following}
    data = (await org["ben"].register()).data
    assert {key: data[f"realm_{key}"] for key in following} == following


async def test_a_description_event_has_its_html(org: Organization) -> None:
    ben = await org["ben"].register()
    assert (await org["ann"].patch("/realm", description=" A *round* table ")).ok
    (event,) = await ben.events()
    html = "<p>A <em>round</em> table</p>"
    assert (event["op"], event["data"]) == (
        "update_dict",
        {"description": "A *round* table", "rendered_description": html},
    )
    assert (await org["ben"].register()).data["realm_description"] == "A *round* table"
    assert (await org.nobody.get("/server_settings")).ok["realm_description"] == html
    assert (await org["ann"].patch("/realm", description="")).ok
    assert (await org.nobody.get("/server_settings")).ok["realm_description"] == ""


async def test_an_equal_value_sends_no_event(org: Organization) -> None:
    ben = await org["ben"].register()
    data = ben.data
    same = {
        "name": data["realm_name"],
        "description": "",
        "invite_required": True,
        "message_retention_days": "unlimited",
        "message_content_edit_limit_seconds": 600,
        "jitsi_server_url": "default",
        "authentication_methods": {"Email": True},
        "can_create_groups": {"new": {"direct_members": [], "direct_subgroups": [6]}},
    }
    assert (await org["ann"].patch("/realm", **same)).ok
    assert (await org["ann"].patch("/realm")).ok
    assert await ben.events() == []


async def test_several_settings_change_together_or_not_at_all(org: Organization) -> None:
    ben = await org["ben"].register()
    refused = await org["ann"].patch("/realm", name="Other", default_language="xx")
    refused.refused()
    assert await ben.events() == []
    assert (await org["ann"].patch("/realm", name="Other", digest_weekday=2)).ok
    assert {(e["property"], e["value"]) for e in await ben.events()} == {
        ("name", "Other"),
        ("digest_weekday", 2),
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", ""),
        ("name", "   "),
        ("name", "n" * 41),
        ("name", "a\nb"),
        ("description", "d" * 1001),
        ("string_id", "elsewhere"),
        ("default_language", "xx"),
        ("default_code_block_language", "two words"),
        ("jitsi_server_url", "ftp://example.com"),
        ("jitsi_server_url", "nowhere"),
        ("jitsi_server_url", "https://" + "x" * 200),
        ("jitsi_server_url", "https://[::1"),
        ("video_chat_provider", 3),
        ("video_chat_provider", -1),
        ("welcome_message_custom_text", "w" * 8001),
        ("welcome_message_custom_text", "😀" * 8001),
        ("new_stream_announcements_stream_id", 99),
        ("signup_announcements_stream_id", 0),
        ("zulip_update_announcements_stream_id", -2),
        ("moderation_request_channel_id", 99),
        ("authentication_methods", {"Email": False}),
        ("authentication_methods", {}),
        ("authentication_methods", {"Telepathy": True}),
        ("authentication_methods", {"Dev": True}),
    ],
)
async def test_an_invalid_value_is_refused(
    readonly_org: Organization, name: str, value: Any
) -> None:
    (await readonly_org["ann"].patch("/realm", **{name: value})).refused()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "a\0b"),
        ("description", "\0"),
        ("invite_required", "True"),
        ("invite_required", 1),
        ("allow_message_editing", "yes"),
        ("digest_weekday", 7),
        ("digest_weekday", -1),
        ("digest_weekday", 1.5),
        ("org_type", 1),
        ("gif_rating_policy", 9),
        ("media_preview_size", 120),
        ("default_avatar_source", "X"),
        ("topics_policy", "empty_topic_only"),
        ("topics_policy", "inherit"),
        ("message_edit_history_visibility_policy", "some"),
        ("waiting_period_threshold", -1),
        ("waiting_period_threshold", 36_501),
        ("message_retention_days", 0),
        ("message_retention_days", -1),
        ("message_retention_days", "forever"),
        ("message_content_edit_limit_seconds", 0),
        ("message_content_edit_limit_seconds", -5),
        ("message_content_delete_limit_seconds", "never"),
        ("move_messages_within_stream_limit_seconds", 1.5),
        ("move_messages_between_streams_limit_seconds", 10**17),
        ("new_stream_announcements_stream_id", "general"),
        ("authentication_methods", ["Email"]),
        ("authentication_methods", {"Email": 1}),
        ("can_create_groups", 3),
        ("can_create_groups", {"old": 3}),
        ("can_create_groups", {"new": "everyone"}),
        ("can_create_groups", "{"),
    ],
)
async def test_a_value_of_another_type_is_refused(
    readonly_org: Organization, name: str, value: Any
) -> None:
    reply = await readonly_org["ann"].patch("/realm", **{name: value})
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == name


async def test_an_unknown_setting_is_reported_as_ignored(org: Organization) -> None:
    names = ("mandatory_topics", "presence_disabled", "uuid", "plan_type", "can_do_magic_group")
    reply = await org["ann"].patch("/realm", **dict.fromkeys(names, 1), name="Other")
    assert sorted(reply.ok["ignored_parameters_unsupported"]) == sorted(names)


OWNERS_ALONE: list[tuple[str, Any]] = [
    ("authentication_methods", {"Email": True}),
    ("message_retention_days", 30),
    ("invite_required", False),
    ("emails_restricted_to_domains", True),
    ("disallow_disposable_email_addresses", False),
    ("waiting_period_threshold", 3),
    ("can_create_groups", {"new": 3}),
    ("can_invite_users_group", {"new": 3}),
    ("can_manage_all_groups", {"new": 3}),
    ("create_multiuse_invite_group", {"new": 2}),
]


async def test_settings_for_joining_and_retention_are_for_owners(org: Organization) -> None:
    await org.add("abe", Role.ADMINISTRATOR)
    for name, value in OWNERS_ALONE:
        reply = await org["abe"].patch("/realm", **{name: value})
        assert reply.body["code"] == "UNAUTHORIZED_PRINCIPAL", name
        assert (await org["ann"].patch("/realm", **{name: value})).status == 200, name


ROLES: list[tuple[Role, bool]] = [
    (Role.ADMINISTRATOR, True),
    (Role.MODERATOR, False),
    (Role.MEMBER, False),
    (Role.GUEST, False),
]


async def test_other_settings_are_for_administrators(org: Organization) -> None:
    for role, allowed in ROLES:
        with row(role, allowed):
            await org.add(f"abe{role}", role)
            reply = await org[f"abe{role}"].patch("/realm", name="Other", digest_weekday=2)
            if allowed:
                assert reply.ok
            else:
                reply.refused("UNAUTHORIZED_PRINCIPAL")
            (await org.nobody.patch("/realm", name="Other")).refused("UNAUTHORIZED", 401)


CHANNELS = (
    "moderation_request_channel_id",
    "new_stream_announcements_stream_id",
    "signup_announcements_stream_id",
    "zulip_update_announcements_stream_id",
)


async def test_a_channel_for_announcements_must_exist_or_be_none(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", is_private=True)
    ruin = await org.channel("ruin", "ann", is_archived=True)
    ben = await org["ben"].register()
    for name in CHANNELS:
        with row(name):
            assert ben.data[f"realm_{name}"] == -1
            (await org["ann"].patch("/realm", **{name: ruin})).refused()
            for channel_id in (lounge, -1):
                assert (await org["ann"].patch("/realm", **{name: channel_id})).ok
                (event,) = await ben.events()
                assert (event["property"], event["value"]) == (name, channel_id)


async def test_unlimited_retention_is_minus_one(org: Organization) -> None:
    await org["ann"].patch("/realm", message_retention_days=3)
    ben = await org["ben"].register()
    assert (await org["ann"].patch("/realm", message_retention_days="unlimited")).ok
    (event,) = await ben.events()
    assert event["value"] == -1
    for odd in ("0", "-1", "1_0", "+1", "1 ", "\u0661", "9" * 20, "1e1", "null "):
        (await org["ann"].patch("/realm", message_retention_days=odd)).refused(
            "REQUEST_VARIABLE_INVALID"
        )


async def test_the_video_call_server_can_be_reset_to_the_default(org: Organization) -> None:
    await org["ann"].patch("/realm", jitsi_server_url="https://meet.example.com")
    ben = await org["ben"].register()
    assert (await org["ann"].patch("/realm", jitsi_server_url='"default"')).ok
    (event,) = await ben.events()
    assert (event["property"], event["value"]) == ("jitsi_server_url", None)


# Permissions


def allowed_value(name: str) -> Any:
    """A group other than the current one that the setting accepts."""
    rule = REALM_SETTINGS[name]
    if rule.allowed_system_groups:
        wanted = {"can_access_all_users_group": "role:members"}.get(name, "role:moderators")
        assert wanted in rule.allowed_system_groups
        return 6 if wanted == "role:members" else 4
    return SystemGroup.FULL_MEMBERS.value


@pytest.mark.parametrize("name", REALM_SETTINGS)
async def test_a_changed_permission_is_sent_and_shown(shared_org: Organization, name: str) -> None:
    org = shared_org
    ben = await org["ben"].register(fetch_event_types=["realm"])
    value, before = allowed_value(name), ben.data[f"realm_{name}"]
    (await org["ann"].patch("/realm", **{name: {"new": value, "old": value}})).refused(
        "EXPECTATION_MISMATCH"
    )
    assert (await org["ann"].patch("/realm", **{name: {"new": value, "old": before}})).ok
    (event,) = await ben.events()
    assert (event["op"], event["property"]) == ("update_dict", "default")
    assert event["data"][name] == value
    shown = (await org["ben"].register(event_types=["realm"])).data
    assert shown[f"realm_{name}"] == value


@pytest.mark.parametrize("name", REALM_SETTINGS)
async def test_a_permission_accepts_the_groups_that_it_lists(
    shared_org: Organization, name: str
) -> None:
    org = shared_org
    data = (await org["ben"].register(event_types=["realm"])).data
    rule = data["server_supported_permission_settings"]["realm"][name]
    for group, allowed in (
        (SystemGroup.INTERNET, rule["allow_internet_group"]),
        (SystemGroup.EVERYONE, rule["allow_everyone_group"]),
        (SystemGroup.NOBODY, rule["allow_nobody_group"]),
    ):
        reply = await org["ann"].patch("/realm", **{name: {"new": int(group)}})
        assert (reply.status == 200) is allowed
    holders = {"direct_members": [org["ben"].user_id], "direct_subgroups": [3]}
    reply = await org["ann"].patch("/realm", **{name: {"new": holders}})
    if rule["require_system_group"]:
        assert reply.refused("SYSTEM_GROUP_REQUIRED")["setting_name"] == name
    else:
        assert reply.ok
        data = (await org["ben"].register(event_types=["realm"])).data
        assert data[f"realm_{name}"] == holders


NOBODYS: list[Any] = [
    99,
    {"direct_members": [999], "direct_subgroups": []},
    {"direct_members": [], "direct_subgroups": [999]},
    {"direct_members": ["dan"], "direct_subgroups": []},
    100,
]
"""Values with unknown people or groups."""


async def test_a_permission_is_held_by_active_people(org: Organization) -> None:
    await org.add("dan")
    gone = UserGroup(id=100, name="gone", created_at=0, deactivated=True)
    await org.do(UserDeactivated(user_id=org["dan"].user_id), UserGroupCreated(group=gone))
    for holders in NOBODYS:
        with row(holders):
            value = holders
            if isinstance(holders, dict) and holders["direct_members"] == ["dan"]:
                value = {**holders, "direct_members": [org["dan"].user_id]}
            (await org["ann"].patch("/realm", can_create_groups={"new": value})).refused()


OF_OLD = [
    ("can_create_public_channel_group", 3, "create_public_stream_policy", 2),
    ("can_create_private_channel_group", 4, "create_private_stream_policy", 4),
    ("can_create_web_public_channel_group", 4, "create_web_public_stream_policy", 4),
    ("can_mention_many_users_group", 1, "wildcard_mention_policy", 6),
]
"""A permission, its new group, and the obsolete policy with its value."""


async def test_an_obsolete_policy_accompanies_its_permission(org: Organization) -> None:
    ben = await org["ben"].register()
    for name, group, old, policy in OF_OLD:
        with row(name):
            await org["ann"].patch("/realm", **{name: {"new": group}})
            (event,) = await ben.events()
            assert event["data"] == {name: group, old: policy}
            assert (await org["ben"].register(event_types=["realm"])).data[f"realm_{old}"] == policy


async def test_the_permission_to_create_channels_applies_immediately(org: Organization) -> None:
    (await org["ann"].patch("/realm", can_create_public_channel_group={"new": 3})).ok
    wanted = {"name": "new", "subscribers": [org["ben"].user_id]}
    (await org["ben"].post("/channels/create", **wanted)).refused()
    (await org["ann"].patch("/realm", can_create_public_channel_group={"new": 6})).ok
    assert (await org["ben"].post("/channels/create", **wanted)).ok


# Effects


async def test_guests_lose_sight_of_strangers_and_regain_it(org: Organization) -> None:
    await org.channel("lounge", "gus", "ben")
    capable = {"client_capabilities": {"user_list_incomplete": True}}
    gus, ben = await org["gus"].register(**capable), await org["ben"].register()
    assert (await org["ann"].patch("/realm", can_access_all_users_group={"new": 6})).ok
    _, *lost = await gus.events()
    assert len(await ben.events()) == 1
    strangers = {org["ann"].user_id, org["cleo"].user_id}
    assert {e["person"]["user_id"] for e in lost if e["op"] == "remove"} == strangers
    assert len(lost) == 2
    assert (await org["ann"].patch("/realm", can_access_all_users_group={"new": 7})).ok
    *gained, _ = await gus.events()
    assert {e["person"]["user_id"] for e in gained if e["op"] == "add"} == strangers
    assert {e["person"]["full_name"] for e in gained} == {"Ann", "Cleo"}


async def test_the_waiting_period_changes_who_is_a_full_member(
    org: Organization,
) -> None:
    ann = await org["ann"].register()
    people = [org[name].user_id for name in ("ben", "cleo", "robo")]
    before = members_of(ann.data, SystemGroup.FULL_MEMBERS)
    assert before == people
    assert (await org["ann"].patch("/realm", waiting_period_threshold=2)).ok
    _, event = await ann.events()
    assert (event["op"], event["group_id"]) == ("remove_members", 5)
    assert event["user_ids"] == people
    data = (await org["ann"].register()).data
    assert members_of(data, SystemGroup.FULL_MEMBERS) == []
    assert (await org["ann"].patch("/realm", waiting_period_threshold=0)).ok
    _, event = await ann.events()
    assert (event["op"], event["user_ids"]) == ("add_members", people)


def members_of(data: Data, group: SystemGroup) -> list[int]:
    (members,) = [g["members"] for g in data["realm_user_groups"] if g["id"] == group]
    return list(members)


async def test_members_who_joined_before_the_period_are_full_members(config: Any) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("old")
        clock.ahead = 3 * 86400
        await org.add("new")
        ann = await org["ann"].register()
        assert (await org["ann"].patch("/realm", waiting_period_threshold=2)).ok
        _, event = await ann.events()
        assert event["user_ids"] == [org["new"].user_id]


async def test_the_settings_survive_a_restart(config: Any) -> None:
    async with new_organization(config) as org:
        holders = {"direct_members": [org["ann"].user_id], "direct_subgroups": [3]}
        await org["ann"].patch(
            "/realm",
            name="Other",
            description="*so*",
            message_content_edit_limit_seconds="unlimited",
            can_create_groups={"new": holders},
        )
        before = (await org["ann"].register(fetch_event_types=["realm"])).data
    async with open_organization(config) as org:
        after = (await org["ann"].register(fetch_event_types=["realm"])).data
        changing = ("queue_id", "last_event_id", "server_generation")
        assert {k: v for k, v in before.items() if k not in changing} == {
            k: v for k, v in after.items() if k not in changing
        }
        (await org["ann"].patch("/realm", name="Third")).ok


async def test_of_two_concurrent_permission_changes_one_is_refused(
    org: Organization,
) -> None:
    change = {"new": 3, "old": 6}
    first = await org["ann"].patch("/realm", can_create_bots_group=change)
    second = await org["ann"].patch("/realm", can_create_bots_group={**change, "new": 2})
    assert first.ok
    second.refused("EXPECTATION_MISMATCH")


# Signing in


async def test_with_development_sign_in_passwords_can_be_disabled(config: Any) -> None:
    async with new_organization(replace(config, dev=True)) as org:
        ann = await org["ann"].register()
        (await org["ann"].patch("/realm", authentication_methods={"Dev": False})).refused()
        methods = {"Email": False, "Dev": True}
        assert (await org["ann"].patch("/realm", authentication_methods=methods)).ok
        (event,) = await ann.events()
        assert event["data"] == {
            "authentication_methods": {
                "Email": {"enabled": False, "available": True},
                "Dev": {"enabled": True, "available": True},
            },
            "email_auth_enabled": False,
            "password_auth_enabled": False,
        }
        settings = (await org.nobody.get("/server_settings")).ok
        assert settings["authentication_methods"]["password"] is False
        assert settings["email_auth_enabled"] is False
        signing_in = {"username": "ann@example.com", "password": "correct horse"}
        (await org.nobody.post("/fetch_api_key", **signing_in)).refused(
            "PASSWORD_AUTH_DISABLED", 401
        )


# The server's own configuration


async def test_a_server_that_forbids_public_access_keeps_doing_so(config: Any) -> None:
    async with new_organization(replace(config, web_public_streams_enabled=False)) as org:
        ann = org["ann"]
        (await ann.patch("/realm", enable_spectator_access=True)).refused()
        data = (await ann.register()).data
        assert data["server_web_public_streams_enabled"] is False
        assert data["can_create_web_public_streams"] is False
        square = await org.channel("square", "ann")
        (await ann.patch(f"/streams/{square}", is_web_public=True)).refused()
        (await ann.post("/channels/create", name="x", subscribers=[], is_web_public=True)).refused()


async def test_the_organization_decides_about_public_access(org: Organization) -> None:
    (await org.nobody.get("/users")).refused("UNAUTHORIZED", 401)
    assert (await org["ann"].patch("/realm", enable_spectator_access=True)).ok
    assert (await org.nobody.get("/users")).ok

    async def is_open() -> bool:
        found: bool = (await org.nobody.get("/server_settings")).ok[
            "realm_web_public_access_enabled"
        ]
        return found

    assert not await is_open()
    square = await org.channel("square", "ann", is_web_public=True)
    assert await is_open()
    assert (await org["ann"].delete(f"/streams/{square}")).ok
    assert not await is_open()
    assert (await org["ann"].patch("/realm", enable_spectator_access=False)).ok
    (await org.nobody.get("/users")).refused("UNAUTHORIZED", 401)
