"""Personal settings: values, events, and changes by administrators."""

from typing import Any

import pytest

from tertulia.domain.accounts.personal_settings import RULES
from tertulia.model.changes import (
    RealmChanged,
    SettingsChanged,
    UserDeactivated,
    UserGroupCreated,
)
from tertulia.model.groups import UserGroup
from tertulia.model.users import Role
from tertulia.wire.api.settings import FIXED, SettingParams, wire_name
from tertulia.wire.http.parameters import declared
from tests.support import PASSWORD, Listener, Organization, as_sent, open_organization, row, until

_NAMES = """
    allow_private_data_export automatically_follow_topics_where_mentioned
    display_emoji_reaction_users enable_desktop_notifications enable_digest_emails
    enable_drafts_synchronization enable_followed_topic_audible_notifications
    enable_followed_topic_desktop_notifications enable_followed_topic_email_notifications
    enable_followed_topic_push_notifications enable_followed_topic_wildcard_mentions_notify
    enable_login_emails enable_marketing_emails enable_offline_email_notifications
    enable_offline_push_notifications enable_online_push_notifications enable_sounds
    enable_stream_audible_notifications enable_stream_desktop_notifications
    enable_stream_email_notifications enable_stream_push_notifications enter_sends
    fluid_layout_width hide_ai_features high_contrast_mode left_side_userlist
    message_content_in_email_notifications pm_content_in_desktop_notifications
    presence_enabled receives_typing_notifications send_private_typing_notifications
    send_read_receipts send_stream_typing_notifications starred_message_counts
    translate_emoticons web_escape_navigates_to_home_view web_inbox_show_channel_folders
    web_left_sidebar_show_channel_folders web_left_sidebar_unreads_count_summary
    web_navigate_to_sent_message web_suggest_update_timezone wildcard_mentions_notify
"""
BOOLEANS = _NAMES.split()
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    **{name: ([True, False], [1, "yes", "", []]) for name in BOOLEANS},
    "automatically_follow_topics_policy": ([1, 2, 3, 4], [0, 5, True, "x"]),
    "automatically_unmute_topics_in_muted_streams_policy": ([1, 2, 3, 4], [0, 5]),
    "color_scheme": ([1, 2, 3], [0, 4, "dark"]),
    "default_language": (["de", "zh-hans", "en"], ["", "klingon", "EN", "x" * 5000]),
    "demote_inactive_streams": ([1, 2, 3], [0, 4]),
    "desktop_icon_count_display": ([1, 2, 3, 4], [0, 5]),
    "email_address_visibility": ([1, 2, 3, 4, 5], [0, 6, "everyone"]),
    "email_notifications_batching_period_seconds": ([1, 300, 604800], [0, -1, 604801, 1.5]),
    "emojiset": (["google", "twitter", "text"], ["apple", ""]),
    "notification_sound": (["ding", "zulip", "none"], ["", "gong", "null\0"]),
    "realm_name_in_email_notifications_policy": ([1, 2, 3], [0, 4]),
    "twenty_four_hour_time": ([True, False, None], [24, "maybe"]),
    "user_list_style": ([1, 2, 3], [0, 4]),
    "web_animate_image_previews": (["always", "on_hover", "never"], ["sometimes"]),
    "web_channel_default_view": ([1, 2, 3, 4], [0, 5]),
    "web_font_size_px": ([14, 16, 20], [0, -3, 10**20, "big"]),
    "web_home_view": (["recent", "inbox", "all_messages"], ["recent_topics", ""]),
    "web_line_height_percent": ([120, 140], [0, -1]),
    "web_mark_read_on_scroll_policy": ([1, 2, 3], [0, 4]),
    "web_stream_unreads_count_display_policy": ([1, 2, 3], [0, 4]),
}


async def own_settings(org: Organization, name: str) -> dict[str, Any]:
    data = (await org[name].register(fetch_event_types=["user_settings"])).data
    settings: dict[str, Any] = data["user_settings"]
    return settings


async def events_of(listener: Listener, kind: str) -> list[dict[str, Any]]:
    return [event for event in await listener.events() if event["type"] == kind]


def test_every_setting_has_a_parameter_with_its_type_s_rule() -> None:
    parameters = {parameter.name for parameter in declared(SettingParams)}
    assert parameters == {wire_name(name) for name in RULES} == VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
async def test_a_setting_accepts_its_values_and_no_others(
    shared_org: Organization, name: str
) -> None:
    """Each test changes a different setting, so they can share an organization."""
    org = shared_org
    good, bad = VALUES[name]
    ben = org["ben"]
    listener = await ben.register(event_types=["user_settings"])
    before = (await own_settings(org, "ben"))[name]
    for value in [*good, good[0]]:
        answer = (await ben.patch("/settings", **{name: as_sent(value)})).ok
        assert (await own_settings(org, "ben"))[name] == value
        events = await listener.events()
        if before == value:
            assert answer["ignored_parameters_unsupported"] == [name]
            assert events == []
        else:
            assert "ignored_parameters_unsupported" not in answer
            (event,) = events
            assert (event["op"], event["property"], event["value"]) == ("update", name, value)
            assert ("language_name" in event) is (name == "default_language")
        before = value
    for value in bad:
        reply = await ben.patch("/settings", **{name: as_sent(value)})
        assert reply.status == 400
        assert reply.body["code"] in {"BAD_REQUEST", "REQUEST_VARIABLE_INVALID"}
    assert (await own_settings(org, "ben"))[name] == good[0]
    assert await listener.events() == []


async def test_only_the_given_settings_change_and_the_change_persists(org: Organization) -> None:
    before = await own_settings(org, "ben")
    answer = (await org["ben"].patch("/settings", color_scheme=2, web_home_view='"recent"')).ok
    assert answer.keys() == {"result", "msg"}
    expected = {**before, "color_scheme": 2, "web_home_view": "recent"}
    assert await own_settings(org, "ben") == expected
    async with open_organization(org.node.config) as later:
        assert await own_settings(later, "ben") == expected
    assert (await own_settings(org, "cleo"))["color_scheme"] == 1


async def test_several_settings_change_together_or_not_at_all(org: Organization) -> None:
    reply = await org["ben"].patch("/settings", color_scheme=2, default_language="klingon")
    reply.refused()
    assert (await own_settings(org, "ben"))["color_scheme"] == 1


async def test_unknown_settings_and_equal_values_are_reported_as_ignored(org: Organization) -> None:
    (fixed, value), *_ = FIXED.items()
    sent = {"dense_mode": True, fixed: "always", "starred_message_counts": True, "emojiset": "text"}
    ignored = ["dense_mode", fixed, "starred_message_counts"]
    answer = (await org["ben"].patch("/settings", **sent)).ok
    assert answer["ignored_parameters_unsupported"] == ignored
    assert (await own_settings(org, "ben"))[fixed] == value
    # Values stored by an older version aren't shown.
    listener = await org["ben"].register(event_types=["user_settings"])
    await org.do(SettingsChanged(user_id=org["ben"].user_id, values={fixed: "always"}, was={}))
    assert (await own_settings(org, "ben"))[fixed] == value
    assert await listener.events() == []


@pytest.mark.parametrize("path", ["/settings/display", "/settings/notifications"])
async def test_the_obsolete_addresses_do_the_same(org: Organization, path: str) -> None:
    assert (await org["ben"].patch(path, color_scheme=2, enable_sounds=False)).ok
    settings = await own_settings(org, "ben")
    assert (settings["color_scheme"], settings["enable_sounds"]) == (2, False)


async def test_the_language_event_has_its_name(org: Organization) -> None:
    listener = await org["ben"].register()
    assert (await org["ben"].patch("/settings", default_language="de")).ok
    (event,) = await events_of(listener, "user_settings")
    assert (event["value"], event["language_name"]) == ("de", "Deutsch")


async def test_obsolete_events_are_for_clients_that_request_them(org: Organization) -> None:
    old = await org["ben"].register(
        event_types=["update_display_settings", "update_global_notifications"]
    )
    usual = await org["ben"].register()
    values = {"color_scheme": 2, "enable_sounds": False, "web_font_size_px": 18}
    assert (await org["ben"].patch("/settings", **values, default_language="de")).ok
    assert (await org["ben"].patch("/settings", timezone="Asia/Kolkata")).ok
    shown = [{n: v for n, v in e.items() if n != "id"} for e in await old.events()]
    display = {"type": "update_display_settings", "user": "ben@example.com"}
    assert shown == [
        {**display, "setting_name": "color_scheme", "setting": 2},
        {
            **display,
            "setting_name": "default_language",
            "setting": "de",
            "language_name": "Deutsch",
        },
        {
            "type": "update_global_notifications",
            "user": "ben@example.com",
            "notification_name": "enable_sounds",
            "setting": False,
        },
        {**display, "setting_name": "timezone", "setting": "Asia/Kolkata"},
    ]
    types = {event["type"] for event in await usual.events()}
    assert types == {"user_settings", "realm_user"}


async def test_settings_events_are_sent_to_their_owner_only(org: Organization) -> None:
    ann = await org["ann"].register()
    assert (await org["ben"].patch("/settings", color_scheme=2)).ok
    assert await ann.events() == []


# The account


async def test_a_new_name_is_sent_to_everyone(org: Organization) -> None:
    gus = await org["gus"].register()
    answer = (await org["ben"].patch("/settings", full_name="  Benedikt ")).ok
    assert "ignored_parameters_unsupported" not in answer
    (event,) = await gus.events()
    assert event["person"] == {"user_id": org["ben"].user_id, "full_name": "Benedikt"}
    again = (await org["ben"].patch("/settings", full_name="Benedikt")).ok
    assert again["ignored_parameters_unsupported"] == ["full_name"]


@pytest.mark.parametrize("name", ["", "x", "a@b", "back`tick", "x" * 101, "a\0b", "Ben|12"])
async def test_an_invalid_name_is_refused(readonly_org: Organization, name: str) -> None:
    assert (await readonly_org["ben"].patch("/settings", full_name=name)).status == 400
    assert (await readonly_org["ben"].get("/users/me")).ok["full_name"] == "Ben"


async def test_names_can_be_restricted_to_administrators(
    org: Organization,
) -> None:
    await org.do(RealmChanged(values={"name_changes_disabled": True}))
    (await org["ben"].patch("/settings", full_name="Benedikt")).refused()
    assert (await org["ben"].patch("/settings", full_name="Ben", color_scheme=2)).ok
    assert (await org["ann"].patch("/settings", full_name="Anna")).ok


async def test_names_can_be_required_to_be_unique(org: Organization) -> None:
    await org.do(RealmChanged(values={"require_unique_names": True}))
    (await org["ben"].patch("/settings", full_name="CLEO")).refused()
    assert (await org["ben"].patch("/settings", full_name="BEN")).ok


async def test_the_time_zone_is_a_setting_and_an_account_field(org: Organization) -> None:
    ben, gus = await org["ben"].register(), await org["gus"].register()
    assert (await org["ben"].patch("/settings", timezone="Europe/Madrid")).ok
    person = {
        "user_id": org["ben"].user_id,
        "email": "ben@example.com",
        "timezone": "Europe/Madrid",
    }
    setting, account = await ben.events()
    assert (setting["type"], setting["property"]) == ("user_settings", "timezone")
    assert setting["value"] == "Europe/Madrid"
    assert account["person"] == person
    assert [event["person"] for event in await gus.events()] == [person]
    assert (await own_settings(org, "ben"))["timezone"] == "Europe/Madrid"
    again = (await org["ben"].patch("/settings", timezone="Europe/Madrid")).ok
    assert again["ignored_parameters_unsupported"] == ["timezone"]
    assert (await org["ben"].patch("/settings", timezone="")).ok


@pytest.mark.parametrize("zone", ["Atlantis", "../etc/passwd", "x" * 1000, "europe/madrid", "\0"])
async def test_an_invalid_time_zone_is_refused(readonly_org: Organization, zone: str) -> None:
    assert (await readonly_org["ben"].patch("/settings", timezone=zone)).status == 400


# Passwords


async def test_a_password_is_changed_with_the_old_one(org: Organization) -> None:
    ann, key = org["ann"], org["ann"].api_key
    reply = await ann.patch("/settings", old_password=PASSWORD, new_password="another one")
    assert "ignored_parameters_unsupported" not in reply.ok
    sign_in = {"username": "ann@example.com"}
    (await org.nobody.post("/fetch_api_key", **sign_in, password=PASSWORD)).refused(
        "AUTHENTICATION_FAILED", 401
    )
    signed_in = await org.nobody.post("/fetch_api_key", **sign_in, password="another one")
    assert signed_in.ok["api_key"] == key
    assert (await ann.get("/users/me")).ok


@pytest.mark.parametrize(
    "passwords",
    [
        {"old_password": "wrong", "new_password": "another one"},
        {"new_password": "another one"},
        {"old_password": "", "new_password": "another one"},
        {"old_password": PASSWORD, "new_password": "short"},
        {"old_password": PASSWORD, "new_password": ""},
        {"old_password": PASSWORD, "new_password": "x" * 101},
    ],
)
async def test_an_invalid_password_change_is_refused(
    readonly_org: Organization, passwords: dict[str, str]
) -> None:
    (await readonly_org["ann"].patch("/settings", **passwords, color_scheme=2)).refused()
    assert (await own_settings(readonly_org, "ann"))["color_scheme"] == 1
    sign_in = {"username": "ann@example.com", "password": PASSWORD}
    assert (await readonly_org.nobody.post("/fetch_api_key", **sign_in)).ok


async def test_the_old_password_alone_changes_nothing(org: Organization) -> None:
    answer = (await org["ann"].patch("/settings", old_password=PASSWORD)).ok
    assert answer["ignored_parameters_unsupported"] == ["old_password"]


async def test_passwords_cannot_be_changed_if_password_sign_in_is_disabled(
    org: Organization,
) -> None:
    await org.do(RealmChanged(values={"password_sign_in": False}))
    reply = await org["ann"].patch("/settings", old_password=PASSWORD, new_password="another one")
    reply.refused()


async def test_a_new_password_ends_no_waiting_poll(org: Organization) -> None:
    """The key stays the same, and so does the client's own session."""
    import asyncio

    listener = await org["ann"].register()
    poll = asyncio.create_task(listener.events(block=True))
    await until(lambda: org.node.delivery.waiting == 1)
    passwords = {"old_password": PASSWORD, "new_password": "another one"}
    assert (await org["ann"].patch("/settings", **passwords, color_scheme=2)).ok
    (event,) = await poll
    assert event["property"] == "color_scheme"


async def test_with_drafts_disabled_none_are_on_the_server(org: Organization) -> None:
    ben = org["ben"]
    draft = {"type": "", "to": [], "topic": "", "content": "later"}
    assert (await ben.post("/drafts", drafts=[draft, draft])).ok["ids"]
    listener = await ben.register()
    assert (await ben.patch("/settings", enable_drafts_synchronization=False)).ok
    (setting,) = await listener.events()  # That event says it all.
    assert setting["property"] == "enable_drafts_synchronization"
    (await ben.get("/drafts")).refused()
    assert (await ben.patch("/settings", enable_drafts_synchronization=True)).ok
    assert (await ben.get("/drafts")).ok["drafts"] == []


# Addresses


VISIBLE = {
    1: {"ann", "ben", "cleo", "gus", "mod"},
    2: {"ann", "ben", "cleo", "mod"},
    3: {"ann", "ben"},
    4: {"ben"},
    5: {"ann", "ben", "mod"},
}


async def test_the_owner_decides_who_sees_an_address(org: Organization) -> None:
    await org.add("mod", Role.MODERATOR)
    ben = org["ben"].user_id
    for visibility in VISIBLE:
        with row(visibility):
            other = 4 if visibility == 1 else 1
            assert (await org["ben"].patch("/settings", email_address_visibility=other)).ok
            wanted = {"event_types": ["realm_user"], "client_gravatar": True}
            queues = {name: await org[name].register(**wanted) for name in VISIBLE[1]}
            assert (await org["ben"].patch("/settings", email_address_visibility=visibility)).ok
            if visibility == other:
                continue
            for name, queue in queues.items():
                person = (await org[name].get(f"/users/{ben}")).ok["user"]
                sees = name in VISIBLE[visibility]
                assert person["delivery_email"] == ("ben@example.com" if sees else None)
                public = "ben@example.com" if visibility == 1 else f"user{ben}@chat.test"
                assert person["email"] == public
                assert (person["avatar_url"] is None) is sees
                news: dict[str, Any] = {}
                for event in await queue.events():
                    news |= event["person"]
                assert news["new_email"] == public
                if name != "ben" and sees != (name in VISIBLE[other]):
                    assert news["delivery_email"] == person["delivery_email"]
                    assert news["avatar_url"] == person["avatar_url"]
                else:
                    assert "delivery_email" not in news


# Other people's settings


async def test_an_administrator_changes_other_people_s_settings(org: Organization) -> None:
    await org.add("admin", Role.ADMINISTRATOR)
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    listener = await org["ben"].register()
    reply = await org["admin"].patch(
        "/settings", target_users={"user_ids": [ben, cleo]}, color_scheme=2, timezone="Asia/Kolkata"
    )
    assert "ignored_parameters_unsupported" not in reply.ok
    for name in ("ben", "cleo"):
        settings = await own_settings(org, name)
        assert (settings["color_scheme"], settings["timezone"]) == (2, "Asia/Kolkata")
    assert (await own_settings(org, "admin"))["color_scheme"] == 1
    properties = [e["property"] for e in await listener.events() if e["type"] == "user_settings"]
    assert properties == ["color_scheme", "timezone"]


async def test_groups_stand_for_their_active_members(org: Organization) -> None:
    ids = [org[name].user_id for name in ("ben", "cleo", "robo")]
    cooks = UserGroup(id=99, name="cooks", created_at=0, members=tuple(ids))
    all_cooks = UserGroup(id=100, name="all cooks", created_at=0, subgroups=(99,))
    await org.do(
        UserGroupCreated(group=cooks),
        UserGroupCreated(group=all_cooks),
        UserDeactivated(user_id=org["cleo"].user_id),
    )
    targets = {"group_ids": [100], "user_ids": [org["gus"].user_id]}
    assert (await org["ann"].patch("/settings", target_users=targets, color_scheme=2)).ok
    settings = org.node.state.settings
    schemes = {name: settings[org[name].user_id].color_scheme for name in org.people}
    assert schemes == {"ann": 1, "ben": 2, "cleo": 1, "gus": 2, "robo": 1}


async def test_people_who_have_edited_their_settings_can_be_skipped(org: Organization) -> None:
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    everybody = {"user_ids": [ben, cleo]}
    assert (await org["ben"].patch("/settings", emojiset="text")).ok
    # Settings changed by administrators don't count as edited.
    assert (await org["ann"].patch("/settings", target_users=everybody, color_scheme=2)).ok
    async with open_organization(org.node.config) as later:
        careful = {**everybody, "skip_if_already_edited": True}
        assert (await later["ann"].patch("/settings", target_users=careful, color_scheme=3)).ok
        assert (await own_settings(later, "ben"))["color_scheme"] == 2
        assert (await own_settings(later, "cleo"))["color_scheme"] == 3


@pytest.fixture(scope="module")
async def gone(shared_org: Organization) -> UserGroup:
    """A deactivated group, and dan, who is deactivated."""
    await shared_org.add("dan")
    await shared_org.do(UserDeactivated(user_id=shared_org["dan"].user_id))
    gone = UserGroup(id=98, name="gone", created_at=0, deactivated=True)
    await shared_org.do(UserGroupCreated(group=gone))
    return gone


@pytest.mark.parametrize(
    ("who", "targets", "values", "code"),
    [
        ("ben", {"user_ids": [1]}, {"color_scheme": 2}, "UNAUTHORIZED_PRINCIPAL"),
        ("ben", {"user_ids": []}, {"color_scheme": 2}, "UNAUTHORIZED_PRINCIPAL"),
        ("ann", {"user_ids": [999]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"user_ids": ["robo"]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"user_ids": ["dan"]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"user_ids": ["ben", 999]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"group_ids": [999]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"group_ids": [98]}, {"color_scheme": 2}, "BAD_REQUEST"),
        ("ann", {"user_ids": ["ben"]}, {"color_scheme": 9}, "REQUEST_VARIABLE_INVALID"),
        ("ann", {"user_ids": ["ben"]}, {"full_name": "Other"}, "BAD_REQUEST"),
        (
            "ann",
            {"user_ids": ["ben"]},
            {"old_password": PASSWORD, "new_password": "another one"},
            "BAD_REQUEST",
        ),
        ("ann", {"user_ids": 4}, {"color_scheme": 2}, "REQUEST_VARIABLE_INVALID"),
        ("ann", [4], {"color_scheme": 2}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_invalid_changes_of_other_people_s_settings_are_refused(
    gone: UserGroup,
    readonly_org: Organization,
    who: str,
    targets: Any,
    values: dict[str, Any],
    code: str,
) -> None:
    org = readonly_org
    if isinstance(targets, dict) and isinstance(targets.get("user_ids"), list):
        ids = [org[one].user_id if isinstance(one, str) else one for one in targets["user_ids"]]
        targets = {"user_ids": ids}
    (await org[who].patch("/settings", target_users=targets, **values)).refused(code)
    assert (await own_settings(org, "ben"))["color_scheme"] == 1


async def test_a_value_that_everyone_has_already_is_reported_as_ignored(org: Organization) -> None:
    targets = {"user_ids": [org["ben"].user_id, org["cleo"].user_id]}
    assert (await org["ben"].patch("/settings", color_scheme=2)).ok
    answer = await org["ann"].patch(
        "/settings", target_users=targets, color_scheme=2, emojiset="google"
    )
    assert answer.ok["ignored_parameters_unsupported"] == ["emojiset"]


async def test_settings_need_an_account(org: Organization) -> None:
    (await org.nobody.patch("/settings", color_scheme=2)).refused("UNAUTHORIZED", 401)
